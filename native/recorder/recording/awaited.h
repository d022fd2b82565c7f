/* What the calls of open_calls.h wait for, in the same page: requests, messages that were sent and not received, and how often this
 * rank has entered a collective of each communicator. Another process compares the pages of all ranks.
 *
 * Every table is bounded, and what has no place is counted. The reader needs no help of the program: a thread changes only what is
 * its own, and a place counts once its key is there.
 */
#ifndef EB_AWAITED_H
#define EB_AWAITED_H

#include <stdbool.h>
#include <stdint.h>

#include "recorder/recording/open_calls.h"

#define EB_AWAITED_MAGIC 0x3454494157424245u /* "EBBWAIT4" */
#define EB_BYTES_UNKNOWN UINT64_MAX
#define EB_AWAITED_TAKEN UINT64_MAX /* the key of a place that is being written, or emptied */
enum {
  EB_AWAITED_REQUESTS = 1024,
  EB_AWAITED_CHANNELS = 1024,
  EB_AWAITED_PROBES = 8, /* places that a key may have, and as many more if all of these are taken */
  EB_AWAITED_COMMUNICATORS = 256,
  EB_AWAITED_OBJECTS = 32, /* of these places, of each kind */
  EB_AWAITED_MEMBERS = 8192,
  EB_AWAITED_ENTERED = 4, /* collectives of a communicator that are kept */
  EB_AWAITED_NAME = 64,
  EB_AWAITED_STARTED = 256, /* persistent requests of which it is remembered what they are */
  EB_AWAITED_PARTITIONS = 512, /* of a partitioned send, the first: it is kept which of them are ready */
};

/* Tags of what MPI_Win_post and MPI_Win_complete tell other ranks, as messages on the window. */
enum { EB_TAG_POSTED = -16, EB_TAG_COMPLETED = -17 };

/* What a communicator's ranks have created over it, and in which they enter collectives on their own: a window, a file, or a
 * persistent collective, whose starts these are. It has a place among the communicators, and a bit in its number. */
typedef enum { EB_OBJECT_WINDOW, EB_OBJECT_PERSISTENT, EB_OBJECT_FILE, EB_NUM_OBJECTS } eb_object_kind;
#define EB_AWAITED_OBJECT(kind) (0x80000000u >> (kind))

typedef enum {
  EB_AWAITED_SEND = 1,
  EB_AWAITED_RECEIVE,
  EB_AWAITED_COLLECTIVE,
  EB_AWAITED_PARTITIONED_SEND,
  EB_AWAITED_PARTITIONED_RECEIVE,
  EB_AWAITED_LOCK, /* of a window, from MPI_Win_lock to MPI_Win_unlock: nothing is awaited, but others may wait for its end */
  EB_AWAITED_NOTHING, /* a request of MPI_PROC_NULL */
} eb_awaited_kind;

/* What the tag of a lock says. */
enum { EB_LOCK_SHARED, EB_LOCK_EXCLUSIVE };

/* In place of partitions: what the MPI leaves in the status of the receive says nothing. */
#define EB_AWAITED_NO_STATUS UINT32_MAX

/* More of the call of a thread. */
typedef struct {
  uint32_t serial; /* of the calls that are no polls */
  uint32_t num, num_left_out; /* requests that the call waits for; of these those that have no place */
  int32_t send_peer, send_tag; /* of a call that also sends, such as MPI_Sendrecv; else EB_PEER_NONE */
  int32_t root; /* of a collective, as a world rank; else EB_PEER_NONE */
  uint64_t send_bytes;
  uint64_t number; /* of the collective on its communicator, from 1; 0: none */
  uint64_t task; /* the thread, as in /proc/PID/task; 0: not known */
  uint64_t reserved[2];
} eb_awaited_call;

/* A request that is not complete, as far as this rank knows: of a send that was complete when it was started the MPI says so only
 * when it is asked. */
typedef struct {
  uint64_t posted_ticks, bytes, number, site; /* site: where it was started */
  uint32_t call, communicator; /* call: that created it */
  int32_t peer, tag;
  uint16_t kind, thread; /* thread: that waits for it, in its call with this serial */
  uint32_t serial;
  uint32_t partitions, num_ready; /* of a partitioned one; partitions of another receive: EB_AWAITED_NO_STATUS, or 0 */
} eb_awaited_request;

/* Messages with the same peer, communicator and tag. */
typedef struct {
  uint32_t is_used; /* 2: the key is there */
  uint32_t communicator;
  int32_t peer, tag;
  uint64_t sent, received, sent_bytes; /* sent_bytes: of the latest */
} eb_awaited_channel;

typedef struct {
  uint32_t call;
  int32_t root;
  uint64_t bytes, site;
} eb_awaited_entered;

typedef struct {
  uint64_t identity, num_entered;
  uint32_t number, size; /* number 0: free */
  int32_t rank;
  uint32_t is_inter;
  int32_t first, stride;
  uint32_t members_at, num_listed; /* num_listed 0: first + stride * rank, or not kept if is_unlisted */
  uint32_t is_unlisted, reserved;
  eb_awaited_entered entered[EB_AWAITED_ENTERED]; /* that with number n at n modulo EB_AWAITED_ENTERED */
  char name[EB_AWAITED_NAME];
} eb_awaited_communicator;

typedef struct {
  uint64_t magic;
  uint32_t bytes; /* of the whole page */
  int32_t pid;
  uint64_t started; /* the process, as in /proc/PID/stat */
  uint64_t pid_namespace;
  uint64_t begin_ns, begin_ticks; /* the same moment by CLOCK_MONOTONIC and by the counter of ticks */
  double tick_s;
  int32_t rank, size;
  uint32_t num_communicators, num_members;
  uint32_t requests_left_out, channels_left_out, communicators_left_out, is_concurrent;
  uint32_t num_objects, objects_left_out;
  uint64_t now_ns; /* about now by CLOCK_MONOTONIC: whoever watches the page sets it from time to time */
  uint64_t objects_forgotten; /* whose places others have got */
  uint64_t reserved[2];
} eb_awaited_head;

typedef struct {
  eb_open_calls_head head;
  eb_open_call calls[EB_OPEN_CALLS_MAX];
  eb_awaited_head awaited;
  eb_awaited_call more[EB_OPEN_CALLS_MAX + 1];
  eb_awaited_communicator communicators[EB_AWAITED_COMMUNICATORS];
  int32_t members[EB_AWAITED_MEMBERS];
  uint64_t keys[EB_AWAITED_REQUESTS]; /* of the requests; 0: free. The first that a key may have are in one line of a cache */
  eb_awaited_request requests[EB_AWAITED_REQUESTS];
  eb_awaited_channel channels[EB_AWAITED_CHANNELS];
  uint64_t ready[EB_AWAITED_REQUESTS][EB_AWAITED_PARTITIONS / 64]; /* a bit for each partition, while the request is open */
} eb_page;

/* Variables that calls read: without the table of the loader. */
#define EB_OWN __attribute__((visibility("hidden")))

/* That of this process; one that no other process sees before eb_page_create. */
EB_OWN extern eb_page *eb_page_current;

/* Several threads may change the tables at once. */
EB_OWN extern bool eb_page_is_shared;

/* A place for more of a thread's calls. */
static inline eb_awaited_call *eb_awaited_call_of(uint32_t thread) {
  return &eb_page_current->more[thread < EB_OPEN_CALLS_MAX ? thread : EB_OPEN_CALLS_MAX];
}

/* How many receives are open of which only their status says which message they have taken. */
EB_OWN extern int eb_awaited_num_wild;
static inline bool eb_awaited_is_wild(const eb_awaited_request *request) {
  return request->kind == EB_AWAITED_RECEIVE && (request->peer < 0 || request->tag == -1); /* EB_TAG_NONE */
}
static inline void eb_awaited_count_wild(int by) {
  if (eb_page_is_shared) (void)__atomic_add_fetch(&eb_awaited_num_wild, by, __ATOMIC_RELAXED);
  else eb_awaited_num_wild += by;
}

/* The handles that the MPI gives to all sends and receives of MPI_PROC_NULL, and perhaps to others that are complete when they are
 * started: nothing is awaited of these. EB_AWAITED_TAKEN: there is none. */
EB_OWN extern uint64_t eb_awaited_done_send, eb_awaited_done_receive;
static inline bool eb_awaited_is_done(uint64_t key) { return key == eb_awaited_done_send || key == eb_awaited_done_receive; }

static inline uint32_t eb_awaited_hash(uint64_t value) { return (uint32_t)(value * 0x9e3779b97f4a7c15u >> 40); }

/* The first of the places that a key may have; a key for which these are taken may have as many more. */
static inline uint32_t eb_awaited_places_of(uint64_t key) {
  return eb_awaited_hash(key) % (EB_AWAITED_REQUESTS / EB_AWAITED_PROBES) * EB_AWAITED_PROBES;
}

/* A request was started: a place for it. EB_AWAITED_REQUESTS: there is none. Then the place is filled. */
uint32_t eb_awaited_place(uint64_t key, eb_awaited_kind kind);
static inline void eb_awaited_post(uint32_t place, uint64_t key, const eb_awaited_request *request) {
  eb_page_current->requests[place] = *request;
  for (int w = 0; w < EB_AWAITED_PARTITIONS / 64 && request->kind == EB_AWAITED_PARTITIONED_SEND; w++)
    eb_page_current->ready[place][w] = 0;
  if (eb_awaited_is_wild(request)) eb_awaited_count_wild(1);
  __atomic_store_n(&eb_page_current->keys[place], key, __ATOMIC_RELEASE);
}

/* What a persistent request is whenever it is started, by its key; only while one thread calls the MPI. */
EB_OWN extern uint64_t eb_awaited_started_keys[EB_AWAITED_STARTED];
EB_OWN extern eb_awaited_request eb_awaited_started[EB_AWAITED_STARTED];
static inline uint32_t eb_awaited_started_at(uint64_t key) { return eb_awaited_hash(key) % EB_AWAITED_STARTED; }
void eb_awaited_remember(uint64_t key, const eb_awaited_request *request);
static inline void eb_awaited_forget(uint64_t key) {
  if (eb_awaited_started_keys[eb_awaited_started_at(key)] == key) eb_awaited_started_keys[eb_awaited_started_at(key)] = 0;
}

/* Whether a request of this key has a place. */
bool eb_awaited_knows(uint64_t key);

/* It has completed, or is given up; `request`: as it was. False: it has no place. */
bool eb_awaited_complete(uint64_t key, eb_awaited_request *request);

/* A message is received that cannot be counted. */
void eb_awaited_lose(void);

/* The thread waits for it in its present call. */
void eb_awaited_mark(uint64_t key, uint32_t thread);

/* Its partitions from `first` to `last` are ready. */
void eb_awaited_ready(uint64_t key, int first, int last);

/* The same of `length` of its partitions. */
void eb_awaited_ready_list(uint64_t key, int length, const int *partitions);

/* The messages with the same peer, communicator and tag; NULL: there are too many. */
eb_awaited_channel *eb_awaited_channel_of(uint32_t communicator, int32_t peer, int32_t tag);

static inline eb_awaited_channel *eb_awaited_channel_at(uint32_t communicator, int32_t peer, int32_t tag) {
  const uint32_t hash = eb_awaited_hash((uint64_t)(uint32_t)peer << 32 ^ (uint64_t)(uint32_t)tag << 8 ^ communicator);
  return &eb_page_current->channels[hash % EB_AWAITED_CHANNELS];
}
static inline bool eb_awaited_is_channel(const eb_awaited_channel *channel, uint32_t communicator, int32_t peer, int32_t tag) {
  return channel->communicator == communicator && channel->peer == peer && channel->tag == tag;
}

/* A message was sent, or received. */
void eb_awaited_message(bool is_sent, uint32_t communicator, int32_t peer, int32_t tag, uint64_t bytes);

/* A place for a communicator: that of all without one if there are too many. */
eb_awaited_communicator *eb_awaited_communicator_add(void);

/* The same for an object of one; NULL: there are too many of its kind. */
eb_awaited_communicator *eb_awaited_object_add(eb_object_kind kind);

/* It has been freed. Other ranks may still be in a last call on it, so its place is used again last, and only if there is no other
 * one. */
void eb_awaited_object_free(eb_awaited_communicator *object, eb_object_kind kind);

/* Place for so many ranks; NULL: no more. */
int32_t *eb_awaited_members_add(uint32_t num);

/* This rank enters a collective. Returns its number. */
uint64_t eb_awaited_enter(eb_awaited_communicator *communicator, uint32_t call, int32_t root, uint64_t bytes, uint64_t site);

#endif
