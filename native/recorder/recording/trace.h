/* The calls and messages of a rank one by one, with their times: `earlybird record --events`.
 *
 * A small ring in memory, from which records go to a large ring in a file: when half of the small one is new, and with the
 * chunks of the recording. The small one stays in the processor's caches, and what a killed process loses is less than it.
 */
#ifndef EB_TRACE_H
#define EB_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define EB_TRACE_MAGIC 0x3245434152544245u /* "EBTRACE2" */
#define EB_TRACE_LONGEST_PAUSE_S 0.5e-6    /* between polls of one record */
#define EB_TAG_NONE (-1)                   /* tags of messages are not negative */

enum {
  EB_TRACE_MAX_CLOCKS = 64,
  EB_TRACE_HEAD_BYTES = 4096, /* in the file, before the first record */
  EB_TRACE_RING_BITS = 13,    /* of the ring in memory */
  EB_TRACE_RING = 1 << EB_TRACE_RING_BITS,
};

/* A moment by the counter of ticks and by CLOCK_MONOTONIC. */
typedef struct {
  uint64_t ticks, ns;
} eb_moment;

/* The beginning of the file. Times are read by two moments, or by more where the run is longer: the counter may drift. */
typedef struct {
  uint64_t magic, capacity;
  uint64_t num; /* of records so far, more than the capacity once the ring is full */
  double tick_s;
  eb_moment begin, last;                   /* last: when the file was written */
  uint64_t num_clocks;                     /* of moments in between, at most one for each writing, evenly spread */
  eb_moment clocks[EB_TRACE_MAX_CLOCKS];
  uint64_t is_cut; /* 1: it could not be written any more, as on a full disk; the run went on */
} eb_trace_head;

/* What follows: record number n, from 1, is in place (n - 1) % capacity. Those of one call, the call itself, the messages
 * that it sent or received and the requests that it completed, have the same begin and, except for those of MPI_Start, the
 * same duration. */
typedef struct {
  uint32_t turn;    /* of the ring: (n - 1) / capacity + 1; 0: not whole */
  uint32_t request; /* the serial number, from 1, of the request that is posted or completed; 0: none. Those of receives grow in
                       the order in which the MPI matches */
  uint64_t begin_ticks, ticks;
  uint64_t bytes;        /* of polls: how many were one after another */
  uint64_t site;         /* the place in the program: see the steps of phases */
  uint64_t posted_ticks; /* of a message received or a completion: when its request was posted or started; else 0 */
  uint32_t what;         /* eb_traced_what: communicator, role, kind */
  int32_t peer, tag;
  uint16_t thread, call;
} eb_traced;

typedef enum {
  EB_TRACED_MESSAGE, /* of a call that has a record of its own; with EB_ROLE_CALL a receive that it has started */
  EB_TRACED_CALL,
  EB_TRACED_POLLS,      /* a thread's, one after another */
  EB_TRACED_COMPLETION, /* of a request, by a call that has a record of its own; no message was received */
  EB_TRACED_THREAD, /* what a thread does with others of its process, see threads/events.h; `bytes` is the identity of a thread or a
                       barrier, with EB_ROLE_RECEIVED the beginning of the thread itself, and `tag` how many meet at a barrier */
} eb_traced_kind;

static inline uint32_t eb_traced_what(uint32_t communicator, unsigned role, eb_traced_kind kind) {
  return (communicator & 0xffffff) | role << 24 | (uint32_t)kind << 28;
}
static inline unsigned eb_traced_role(const eb_traced *record) { return record->what >> 24 & 0xf; }
static inline eb_traced_kind eb_traced_kind_of(const eb_traced *record) { return (eb_traced_kind)(record->what >> 28); }

/* In the memory of the ring `turn` is that of this ring. */
typedef struct {
  bool is_on, is_shared; /* shared: several threads may add */
  uint64_t num; /* of records so far */
  uint64_t num_written;
  uint32_t last_request;
  eb_traced *records;
} eb_trace_ring;
extern eb_trace_ring eb_trace;

static inline bool eb_trace_is_on(void) { return __builtin_expect(__atomic_load_n(&eb_trace.is_on, __ATOMIC_RELAXED), 0); }

/* Creates the file, for the latest `capacity` records. After a failure, which is reported, none is kept. */
void eb_trace_create(const char *path, uint64_t capacity, double tick_s, bool is_shared);

static inline uint32_t eb_trace_turn(uint64_t number) { return (uint32_t)((number - 1) >> EB_TRACE_RING_BITS) + 1; }
static inline eb_traced *eb_trace_place(uint64_t number) { return &eb_trace.records[(number - 1) & (EB_TRACE_RING - 1)]; }

/* Adds a record, whose turn is ignored. Returns its number. */
static inline uint64_t eb_trace_add(const eb_traced *record) {
  uint64_t before;
  if (eb_trace.is_shared) before = __atomic_fetch_add(&eb_trace.num, 1, __ATOMIC_RELAXED);
  else {
    before = eb_trace.num;
    __atomic_store_n(&eb_trace.num, before + 1, __ATOMIC_RELAXED);
  }
  eb_traced *const added = eb_trace_place(before + 1);
  __atomic_store_n(&added->turn, 0, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  memcpy((char *)added + sizeof added->turn, (const char *)record + sizeof record->turn, sizeof *record - sizeof record->turn);
  __atomic_store_n(&added->turn, eb_trace_turn(before + 1), __ATOMIC_RELEASE);
  return before + 1;
}

/* Has so much been added since the last writing that somebody should write, or must? */
static inline uint64_t eb_trace_num_unwritten(void) {
  return __atomic_load_n(&eb_trace.num, __ATOMIC_RELAXED) - __atomic_load_n(&eb_trace.num_written, __ATOMIC_RELAXED);
}

/* The serial number of a request that is posted; 0 without a trace. */
static inline uint32_t eb_trace_post(void) {
  if (!eb_trace_is_on()) return 0;
  if (eb_trace.is_shared) return __atomic_add_fetch(&eb_trace.last_request, 1, __ATOMIC_RELAXED);
  return ++eb_trace.last_request;
}

/* Writes the records that are new. Only by one thread at a time; others may add meanwhile. After a
 * failure, which is reported, the file keeps what it has, and nothing more is added. */
void eb_trace_write(void);

/* The same for one that has been written and has grown since. */
void eb_trace_rewrite(uint64_t number);

#endif
