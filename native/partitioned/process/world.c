/* Holds the state of the process, its lock, and the way to end the job. */
#include "partitioned/process/world.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

eb_world_state eb_world = {.self = MPI_COMM_NULL};

static pthread_mutex_t lock;

void eb_lock(void) {
  if (eb_world.multiple) pthread_mutex_lock(&lock);
}

void eb_unlock(void) {
  if (eb_world.multiple) pthread_mutex_unlock(&lock);
}

bool eb_is_open_mpi(void) {
#if defined(OPEN_MPI)
  return true;
#elif defined(MPI_ABI)
  return dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != NULL;
#else
  return false;
#endif
}

static _Noreturn void end_job(int status) {
  /* Launchers drop what is printed directly before an abort (Hydra 5.0.2, Intel's). */
  nanosleep(&(struct timespec){0, 200000000}, NULL);
  PMPI_Abort(MPI_COMM_WORLD, status);
  abort();
}

void eb_abort(const char *sentence) {
  fprintf(stderr, "earlybird: rank %d: %s\n", eb_world.rank, sentence);
  end_job(1);
}

void eb_refuse_config(const char *sentence) {
  fprintf(stderr, "earlybird: %s\n", sentence);
  end_job(2);
}

void eb_lock_begin(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  /* MPI calls our attribute callback from within calls that we make under the lock. */
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
}
