/* Files: calls, the bytes that they ask for, and time. A read that reaches the end of the file gets fewer. */
#include "recorder/calls/wrap.h"
#include "recorder/recording/mpi_files.h"

#define BYTES eb_add_call(&span, call, NULL, EB_PEER_NONE, eb_bytes(&span, count, datatype))

/* With counts of int and of MPI_Count. */
#define BOTH_COUNTS(name, PARAMETERS, ARGUMENTS)   \
  EB_WRAP(name, PARAMETERS(int), ARGUMENTS, BYTES) \
  EB_LARGE(EB_WRAP(name##_c, PARAMETERS(MPI_Count), ARGUMENTS, BYTES))
/* The same of calls that all ranks of the file make. */
#define ALL_ENTER(name, PARAMETERS, ARGUMENTS, COUNTED) \
  EB_WRAP_ABOUT(EB_CALL_ALONE, name, PARAMETERS, ARGUMENTS, eb_file_enters(&span, fh), COUNTED)
#define BOTH_COUNTS_OF_ALL(name, PARAMETERS, ARGUMENTS) \
  ALL_ENTER(name, PARAMETERS(int), ARGUMENTS, BYTES)    \
  EB_LARGE(ALL_ENTER(name##_c, PARAMETERS(MPI_Count), ARGUMENTS, BYTES))

#define READ(COUNT) (MPI_File fh, void *buf, COUNT count, MPI_Datatype datatype, MPI_Status *status)
#define WRITE(COUNT) (MPI_File fh, const void *buf, COUNT count, MPI_Datatype datatype, MPI_Status *status)
#define READ_AT(COUNT) (MPI_File fh, MPI_Offset offset, void *buf, COUNT count, MPI_Datatype datatype, MPI_Status *status)
#define WRITE_AT(COUNT) (MPI_File fh, MPI_Offset offset, const void *buf, COUNT count, MPI_Datatype datatype, MPI_Status *status)
BOTH_COUNTS(MPI_File_read, READ, (fh, buf, count, datatype, status))
BOTH_COUNTS_OF_ALL(MPI_File_read_all, READ, (fh, buf, count, datatype, status))
BOTH_COUNTS(MPI_File_read_shared, READ, (fh, buf, count, datatype, status))
BOTH_COUNTS_OF_ALL(MPI_File_read_ordered, READ, (fh, buf, count, datatype, status))
BOTH_COUNTS(MPI_File_write, WRITE, (fh, buf, count, datatype, status))
BOTH_COUNTS_OF_ALL(MPI_File_write_all, WRITE, (fh, buf, count, datatype, status))
BOTH_COUNTS(MPI_File_write_shared, WRITE, (fh, buf, count, datatype, status))
BOTH_COUNTS_OF_ALL(MPI_File_write_ordered, WRITE, (fh, buf, count, datatype, status))
BOTH_COUNTS(MPI_File_read_at, READ_AT, (fh, offset, buf, count, datatype, status))
BOTH_COUNTS_OF_ALL(MPI_File_read_at_all, READ_AT, (fh, offset, buf, count, datatype, status))
BOTH_COUNTS(MPI_File_write_at, WRITE_AT, (fh, offset, buf, count, datatype, status))
BOTH_COUNTS_OF_ALL(MPI_File_write_at_all, WRITE_AT, (fh, offset, buf, count, datatype, status))

#define WITH_REQUEST(name, PARAMETERS, ARGUMENTS)                  \
  EB_WRAP_OPEN(name, PARAMETERS(int), ARGUMENTS, EB_OPENED(BYTES)) \
  EB_LARGE(EB_WRAP_OPEN(name##_c, PARAMETERS(MPI_Count), ARGUMENTS, EB_OPENED(BYTES)))
#define IREAD(COUNT) (MPI_File fh, void *buf, COUNT count, MPI_Datatype datatype, MPI_Request *request)
#define IWRITE(COUNT) (MPI_File fh, const void *buf, COUNT count, MPI_Datatype datatype, MPI_Request *request)
#define IREAD_AT(COUNT) (MPI_File fh, MPI_Offset offset, void *buf, COUNT count, MPI_Datatype datatype, MPI_Request *request)
#define IWRITE_AT(COUNT) (MPI_File fh, MPI_Offset offset, const void *buf, COUNT count, MPI_Datatype datatype, MPI_Request *request)
#define ALL_WITH_REQUEST_OF(name, PARAMETERS, ARGUMENTS)                                                \
  EB_WRAP_ABOUT(EB_CALL_OPEN, name, PARAMETERS, ARGUMENTS, eb_file_enters(&span, fh), EB_OPENED(BYTES); \
                if (rc == MPI_SUCCESS) eb_file_posts(&span, call, *request))
#define ALL_WITH_REQUEST(name, PARAMETERS, ARGUMENTS)   \
  ALL_WITH_REQUEST_OF(name, PARAMETERS(int), ARGUMENTS) \
  EB_LARGE(ALL_WITH_REQUEST_OF(name##_c, PARAMETERS(MPI_Count), ARGUMENTS))
WITH_REQUEST(MPI_File_iread, IREAD, (fh, buf, count, datatype, request))
ALL_WITH_REQUEST(MPI_File_iread_all, IREAD, (fh, buf, count, datatype, request))
WITH_REQUEST(MPI_File_iread_shared, IREAD, (fh, buf, count, datatype, request))
WITH_REQUEST(MPI_File_iwrite, IWRITE, (fh, buf, count, datatype, request))
ALL_WITH_REQUEST(MPI_File_iwrite_all, IWRITE, (fh, buf, count, datatype, request))
WITH_REQUEST(MPI_File_iwrite_shared, IWRITE, (fh, buf, count, datatype, request))
WITH_REQUEST(MPI_File_iread_at, IREAD_AT, (fh, offset, buf, count, datatype, request))
ALL_WITH_REQUEST(MPI_File_iread_at_all, IREAD_AT, (fh, offset, buf, count, datatype, request))
WITH_REQUEST(MPI_File_iwrite_at, IWRITE_AT, (fh, offset, buf, count, datatype, request))
ALL_WITH_REQUEST(MPI_File_iwrite_at_all, IWRITE_AT, (fh, offset, buf, count, datatype, request))

/* Split collectives: bytes at the begin, time at both. */
#define READ_BEGIN(COUNT) (MPI_File fh, void *buf, COUNT count, MPI_Datatype datatype)
#define WRITE_BEGIN(COUNT) (MPI_File fh, const void *buf, COUNT count, MPI_Datatype datatype)
#define READ_AT_BEGIN(COUNT) (MPI_File fh, MPI_Offset offset, void *buf, COUNT count, MPI_Datatype datatype)
#define WRITE_AT_BEGIN(COUNT) (MPI_File fh, MPI_Offset offset, const void *buf, COUNT count, MPI_Datatype datatype)
#define READ_END(name) ALL_ENTER(name, (MPI_File fh, void *buf, MPI_Status *status), (fh, buf, status), EB_ONLY_TIME)
#define WRITE_END(name) ALL_ENTER(name, (MPI_File fh, const void *buf, MPI_Status *status), (fh, buf, status), EB_ONLY_TIME)
BOTH_COUNTS_OF_ALL(MPI_File_read_all_begin, READ_BEGIN, (fh, buf, count, datatype))
BOTH_COUNTS_OF_ALL(MPI_File_read_ordered_begin, READ_BEGIN, (fh, buf, count, datatype))
BOTH_COUNTS_OF_ALL(MPI_File_write_all_begin, WRITE_BEGIN, (fh, buf, count, datatype))
BOTH_COUNTS_OF_ALL(MPI_File_write_ordered_begin, WRITE_BEGIN, (fh, buf, count, datatype))
BOTH_COUNTS_OF_ALL(MPI_File_read_at_all_begin, READ_AT_BEGIN, (fh, offset, buf, count, datatype))
BOTH_COUNTS_OF_ALL(MPI_File_write_at_all_begin, WRITE_AT_BEGIN, (fh, offset, buf, count, datatype))
READ_END(MPI_File_read_all_end)
READ_END(MPI_File_read_ordered_end)
READ_END(MPI_File_read_at_all_end)
WRITE_END(MPI_File_write_all_end)
WRITE_END(MPI_File_write_ordered_end)
WRITE_END(MPI_File_write_at_all_end)

static void opened(const eb_span *span, unsigned call, int rc, MPI_Comm comm, const MPI_File *fh) {
  eb_span_entered(span, call, eb_span_communicator(span, comm), EB_PEER_NONE, EB_BYTES_UNKNOWN);
  if (rc == MPI_SUCCESS) eb_file_opened(span, *fh, comm);
  eb_add_call(span, call, NULL, EB_PEER_NONE, 0);
}

EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_File_open, (MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh),
              (comm, filename, amode, info, fh), EB_ABOUT_ALL, opened(&span, call, rc, comm, fh))
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_File_close, (MPI_File * fh), (fh), if (span.thread && fh) eb_file_closes(&span, *fh), EB_ONLY_TIME)
EB_WRAP(MPI_File_delete, (const char *filename, MPI_Info info), (filename, info), EB_ONLY_TIME)
ALL_ENTER(MPI_File_sync, (MPI_File fh), (fh), EB_ONLY_TIME)
EB_WRAP(MPI_File_seek, (MPI_File fh, MPI_Offset offset, int whence), (fh, offset, whence), EB_ONLY_TIME)
ALL_ENTER(MPI_File_seek_shared, (MPI_File fh, MPI_Offset offset, int whence), (fh, offset, whence), EB_ONLY_TIME)
ALL_ENTER(MPI_File_set_size, (MPI_File fh, MPI_Offset bytes), (fh, bytes), EB_ONLY_TIME)
ALL_ENTER(MPI_File_preallocate, (MPI_File fh, MPI_Offset bytes), (fh, bytes), EB_ONLY_TIME)
ALL_ENTER(MPI_File_set_view,
          (MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep, MPI_Info info),
          (fh, disp, etype, filetype, datarep, info), EB_ONLY_TIME)
