/* Buffers of MPI_Bsend: calls that wait until they are empty. Only time. */
#include "recorder/calls/wrap.h"

EB_WRAP(MPI_Buffer_detach, (void *buffer_addr, int *size), (buffer_addr, size), EB_ONLY_TIME)
EB_LARGE(EB_WRAP(MPI_Buffer_detach_c, (void *buffer_addr, MPI_Count *size), (buffer_addr, size), EB_ONLY_TIME))
#ifdef EB_HAS_BUFFER_FLUSH
EB_WRAP(MPI_Buffer_flush, (void), (), EB_ONLY_TIME)
EB_WRAP_OPEN(MPI_Buffer_iflush, (MPI_Request * request), (request), EB_OPENED(EB_ONLY_TIME))
EB_WRAP_OPEN(MPI_Comm_iflush_buffer, (MPI_Comm comm, MPI_Request *request), (comm, request), EB_OPENED(EB_ONLY_TIME))
EB_WRAP(MPI_Comm_flush_buffer, (MPI_Comm comm), (comm), EB_ONLY_TIME)
EB_WRAP(MPI_Comm_detach_buffer, (MPI_Comm comm, void *buffer_addr, int *size), (comm, buffer_addr, size), EB_ONLY_TIME)
EB_LARGE(EB_WRAP(MPI_Comm_detach_buffer_c, (MPI_Comm comm, void *buffer_addr, MPI_Count *size), (comm, buffer_addr, size),
                 EB_ONLY_TIME))
#endif
