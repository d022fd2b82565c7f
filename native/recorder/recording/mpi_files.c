/* Files of the program by their handles: files have no attributes in which the MPI could keep more. */
#include "recorder/recording/mpi_files.h"

#include <pthread.h>

enum { MAX_FILES = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  MPI_File handle;
  eb_awaited_communicator *awaited; /* NULL: free */
} files[MAX_FILES];

/* Also of one without a place in the page, which is counted there as left out. For a file of one rank nobody waits. */
void eb_file_opened(const eb_span *span, MPI_File file, MPI_Comm comm) {
  eb_communicator *const communicator = eb_span_communicator(span, comm);
  eb_awaited_communicator *const awaited = communicator && communicator->local.num > 1
                                               ? eb_communicator_object(communicator, EB_OBJECT_FILE)
                                               : NULL;
  pthread_mutex_lock(&lock);
  /* One that was closed in a call that is not recorded had this handle. */
  for (int f = 0; f < MAX_FILES; f++)
    if (files[f].handle == file && files[f].awaited) {
      eb_communicator_object_free(files[f].awaited, EB_OBJECT_FILE);
      files[f].awaited = NULL;
    }
  int place = 0;
  while (place < MAX_FILES && files[place].awaited) place++;
  if (awaited && place < MAX_FILES) {
    files[place].handle = file;
    files[place].awaited = awaited;
  }
  pthread_mutex_unlock(&lock);
}

static void enter(const eb_span *span, MPI_File file, bool closes) {
  eb_awaited_communicator *awaited = NULL;
  if (!span->thread) return;
  pthread_mutex_lock(&lock);
  for (int f = 0; f < MAX_FILES && !awaited; f++) {
    if (!files[f].awaited || files[f].handle != file) continue;
    awaited = files[f].awaited;
    if (closes) files[f].awaited = NULL;
  }
  pthread_mutex_unlock(&lock);
  if (!awaited) return;
  /* Before the call that closes it: only another thread could open one meanwhile. */
  if (closes) eb_communicator_object_free(awaited, EB_OBJECT_FILE);
  eb_open_call *const open = span->thread->open;
  open->communicator = awaited->number;
  span->thread->awaited->number = eb_awaited_enter(awaited, open->call, EB_PEER_NONE, EB_BYTES_UNKNOWN, open->site);
}

void eb_file_enters(const eb_span *span, MPI_File file) { enter(span, file, false); }
void eb_file_posts(const eb_span *span, unsigned call, MPI_Request request) {
  const uint64_t number = span->thread->awaited->number;
  if (number == 0) return;
  eb_span_posts_on(span, request, EB_AWAITED_COLLECTIVE, call, span->thread->open->communicator, number, EB_PEER_NONE, EB_TAG_NONE,
                   EB_BYTES_UNKNOWN, 0);
}
void eb_file_closes(const eb_span *span, MPI_File file) { enter(span, file, true); }
