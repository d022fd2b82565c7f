/* The C side of the Fortran cases: makes, starts and completes requests whose handles cross the border. */
#include <string.h>
#include <time.h>

#include "earlybird.h"

MPI_Fint c_make(int sends, double *buffer, int partitions, int count, int peer, int tag, MPI_Fint comm) {
  MPI_Request request;
  int rc;
  if (sends) rc = MPI_Psend_init(buffer, partitions, count, MPI_DOUBLE, peer, tag, MPI_Comm_f2c(comm), MPI_INFO_NULL, &request);
  else rc = MPI_Precv_init(buffer, partitions, count, MPI_DOUBLE, peer, tag, MPI_Comm_f2c(comm), MPI_INFO_NULL, &request);
  return MPI_Request_c2f(rc == MPI_SUCCESS ? request : MPI_REQUEST_NULL);
}

int c_start(MPI_Fint handle) {
  MPI_Request request = MPI_Request_f2c(handle);
  return MPI_Start(&request);
}

int c_pready(MPI_Fint handle, int low, int high) { return MPI_Pready_range(low, high, MPI_Request_f2c(handle)); }

int c_wait(MPI_Fint *handle, int *source, int *tag, int *count) {
  MPI_Request request = MPI_Request_f2c(*handle);
  MPI_Status status;
  const int rc = MPI_Wait(&request, &status);
  MPI_Get_count(&status, MPI_DOUBLE, count);
  *source = status.MPI_SOURCE;
  *tag = status.MPI_TAG;
  *handle = MPI_Request_c2f(request);
  return rc;
}

int c_free(MPI_Fint *handle) {
  MPI_Request request = MPI_Request_f2c(*handle);
  const int rc = MPI_Request_free(&request);
  *handle = MPI_Request_c2f(request);
  return rc;
}

static int sentence_has(int code, const char *text) {
  char sentence[MPI_MAX_ERROR_STRING];
  int length;
  return MPI_Error_string(code, sentence, &length) == MPI_SUCCESS && strstr(sentence, text) != NULL;
}

/* MPICH 4.0.2 forgets the sentence of a code that was added to a class of its own. */
static int sentences_are_kept(void) {
  static int is_known, are_kept;
  int code;
  if (is_known) return are_kept;
  is_known = 1;
  MPI_Add_error_code(MPI_ERR_ARG, &code);
  MPI_Add_error_string(code, "a sentence");
  return are_kept = sentence_has(code, "a sentence");
}

/* A sentence of libearlybird's is the code's: then the request it was raised for is ours. */
int c_says(int code, const char *text) { return sentences_are_kept() ? sentence_has(code, text) : code != MPI_SUCCESS; }

void c_pause(int milliseconds) {
  const struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
  nanosleep(&pause, NULL);
}
