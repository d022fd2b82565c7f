/* Files of the program: which collectives its ranks have entered on each. */
#ifndef EB_RECORDED_MPI_FILES_H
#define EB_RECORDED_MPI_FILES_H

#include "recorder/recording/recorder.h"

/* A call has opened the file over the communicator. */
void eb_file_opened(const eb_span *span, MPI_File file, MPI_Comm comm);

/* The call that begins is collective over the file; and it ends it. Of files that are not known nothing is noted. */
void eb_file_enters(const eb_span *span, MPI_File file);
void eb_file_closes(const eb_span *span, MPI_File file);
/* A collective that was entered has started the request. */
void eb_file_posts(const eb_span *span, unsigned call, MPI_Request request);

#endif
