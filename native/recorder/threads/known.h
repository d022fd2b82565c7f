/* The threads and barriers of the program that are recorded, by their handles. */
#ifndef EB_KNOWN_H
#define EB_KNOWN_H

#include <pthread.h>
#include <stdint.h>

/* Held while a thread is created, so that it does nothing before it is known. */
void eb_known_lock(void);
void eb_known_unlock(void);

/* Under the lock. The handle may be that of a thread that has ended and that nobody joins. */
void eb_known_thread_add(pthread_t thread, uint64_t serial);

/* Returns the serial number of the thread and forgets it; 0: not known. */
uint64_t eb_known_thread_take(pthread_t thread);

typedef struct {
  uint64_t identity; /* 0: not known */
  unsigned num;      /* of threads that meet there */
} eb_known_barrier;

void eb_known_barrier_add(const pthread_barrier_t *barrier, unsigned num);
eb_known_barrier eb_known_barrier_at(const pthread_barrier_t *barrier);
void eb_known_barrier_forget(const pthread_barrier_t *barrier);

#endif
