/* Threads that use a ring as two processes do: ring_threads STARTS SENDING_THREADS
 *
 * Each start has other data, some have other segments, and the threads of the sender copy segments side by side. Fails unless every byte
 * arrives. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/node/ring.h"

enum { TOTAL_BYTES = 20000, MAX_SEGMENTS = 8, MAX_THREADS = 4 };

static int num_starts, num_threads;
static eb_ring sender, receiver;
static unsigned char data[TOTAL_BYTES], received[TOTAL_BYTES];
static atomic_int begun, num_done; /* the start that the threads are in; how many have filled it */

static int num_segments_of(int start) { return 1 + start % MAX_SEGMENTS; }
static int64_t begin_of(int start, int segment) { return (int64_t)TOTAL_BYTES * segment / num_segments_of(start); }
static unsigned char byte_of(int start, int64_t at) { return (unsigned char)(start * 7 + at * 31 + at / 256); }

static void fill(int start, int thread) {
  for (int s = thread; s < num_segments_of(start); s += num_threads) {
    const int64_t begin = begin_of(start, s);
    eb_ring_fill(&sender, (uint64_t)start, s, begin, data + begin, begin_of(start, s + 1) - begin);
  }
  atomic_fetch_add(&num_done, 1);
}

static void *help(void *thread) {
  for (int start = 1; start <= num_starts; start++) {
    while (atomic_load(&begun) < start) sched_yield();
    fill(start, (int)(intptr_t)thread);
  }
  return NULL;
}

static void *send(void *unused) {
  pthread_t helpers[MAX_THREADS];
  for (int t = 1; t < num_threads; t++) pthread_create(&helpers[t], NULL, help, (void *)(intptr_t)t);
  for (int start = 1; start <= num_starts; start++) {
    for (int64_t at = 0; at < TOTAL_BYTES; at++) data[at] = byte_of(start, at);
    eb_ring_open(&sender, (uint64_t)start);
    atomic_store(&num_done, 0);
    atomic_store(&begun, start);
    fill(start, 0);
    while (atomic_load(&num_done) < num_threads || !eb_ring_is_free(&sender, (uint64_t)start + 1)) sched_yield();
  }
  for (int t = 1; t < num_threads; t++) pthread_join(helpers[t], NULL);
  return unused;
}

static void receive(int start, int segment) {
  const int64_t begin = begin_of(start, segment), num_bytes = begin_of(start, segment + 1) - begin;
  const int num_chunks = eb_ring_num_chunks(num_bytes);
  while (eb_ring_num_filled(&receiver, (uint64_t)start, segment, num_chunks) < num_chunks) sched_yield();
  memcpy(received + begin, eb_ring_at(&receiver, (uint64_t)start, begin), (size_t)num_bytes);
}

int main(int num_arguments, char **arguments) {
  pthread_t sending;
  if (num_arguments != 3) return 2;
  num_starts = atoi(arguments[1]);
  num_threads = atoi(arguments[2]);
  void *const memory = aligned_alloc(64, (size_t)eb_ring_bytes(TOTAL_BYTES));
  eb_ring_format(memory);
  eb_ring_begin(&sender, memory, TOTAL_BYTES);
  eb_ring_begin(&receiver, memory, TOTAL_BYTES);
  pthread_create(&sending, NULL, send, NULL);
  for (int start = 1; start <= num_starts; start++) {
    for (int s = num_segments_of(start) - 1; s >= 0; s--) receive(start, s);
    eb_ring_consume(&receiver, (uint64_t)start);
    for (int64_t at = 0; at < TOTAL_BYTES; at++)
      if (received[at] != byte_of(start, at)) {
        fprintf(stderr, "start %d: byte %lld is wrong\n", start, (long long)at);
        return 1;
      }
  }
  pthread_join(sending, NULL);
  return 0;
}
