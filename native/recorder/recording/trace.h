/* The latest calls and messages of a rank one by one, with their times: `earlybird record --events`.
 *
 * A ring in memory, of which a file has a copy in the same places; what has changed is written with the chunks of the recording.
 */
#ifndef EB_TRACE_H
#define EB_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#define EB_TRACE_MAGIC 0x3145434152544245u /* "EBTRACE1" */
#define EB_TRACE_LONGEST_PAUSE_S 0.5e-6    /* between polls of one record */
#define EB_TAG_NONE (-1)                   /* tags of messages are not negative */

/* The beginning of the file. Times are read by two moments, each by the counter of ticks and by CLOCK_MONOTONIC. */
typedef struct {
  uint64_t magic, capacity;
  uint64_t num; /* of records so far, more than the capacity once the ring is full */
  double tick_s;
  uint64_t begin_ticks, begin_ns;
  uint64_t last_ticks, last_ns; /* when the file was written */
} eb_trace_head;

/* What follows: record number n, from 1, is in place (n - 1) % capacity. Those of one call, the call itself and the messages
 * that it sent or received, have the same begin and, except for those of MPI_Start, the same duration. */
typedef struct {
  uint64_t number; /* a record with another one is of an earlier turn, or not whole */
  uint64_t begin_ticks, ticks;
  uint64_t bytes; /* of polls: how many were one after another */
  uint64_t site;  /* the address after the call in the program: see the steps of phases */
  uint32_t communicator;
  int32_t peer, tag;
  uint32_t posted; /* of a message received: grows in the order in which the MPI matches receives; else 0 */
  uint32_t thread;
  uint16_t call;
  uint8_t role, kind; /* kind: eb_traced_kind */
} eb_traced;

typedef enum {
  EB_TRACED_MESSAGE, /* of a call that has a record of its own */
  EB_TRACED_CALL,
  EB_TRACED_POLLS, /* a thread's, one after another */
} eb_traced_kind;

/* Is it kept? */
extern bool eb_trace_is_on;

/* Creates the file, for the latest `capacity` records. After a failure, which is reported, none is kept. */
void eb_trace_create(const char *path, uint64_t capacity, double tick_s);

/* Adds a record, whose number is ignored. Returns where it is; *number is the one that it was given. */
eb_traced *eb_trace_add(const eb_traced *record, uint64_t *number);

/* The place of a receive in the order of matching, where a trace is kept. */
uint32_t eb_trace_post(void);

/* Writes the records from this number on that are in the ring. Only by one thread at a time; others may add meanwhile. After a
 * failure, which is reported, the file is removed. */
void eb_trace_write(uint64_t from_number);
/* How many have been written, so far as they were complete. */
uint64_t eb_trace_num_written(void);

#endif
