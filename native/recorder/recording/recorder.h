/* What the wrappers share: the span of a call, and how it is counted. */
#ifndef EB_RECORDER_H
#define EB_RECORDER_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "recorder/recording/call.h"
#include "recorder/recording/communicators.h"
#include "recorder/recording/epoch.h"
#include "recorder/recording/identity.h"
#include "recorder/recording/page.h"
#include "recorder/recording/places.h"
#include "recorder/recording/requests.h"
#include "recorder/recording/table.h"
#include "recorder/recording/ticks.h"
#include "recorder/recording/trace.h"

/* Only the wrappers are visible. */
#define EB_EXPORT __attribute__((visibility("default")))

enum { EB_NUM_REMEMBERED = 16 };

typedef struct eb_thread {
  struct eb_thread *next;
  uint32_t number;
  int is_used;   /* by a living thread: else the next new one takes it over */
  bool is_inside; /* a recorded call: what it calls in turn, the MPI or a callback of the program, is part of it */
  const char *frame; /* of the present call, or the last one */
  uint64_t due_ticks;  /* when the table is written next */
  uint64_t keep_ticks; /* when what has been counted since is written, in case that the thread hangs */
  eb_open_call *open;  /* where its present call is; `no_page` if it has no place */
  eb_awaited_call *awaited; /* more of it */
  eb_open_call no_page;
  eb_sites sites;
  eb_table table;
  eb_epoch epoch;
  /* Handles of communicators, looked up already. */
  uint32_t generation;
  struct {
    MPI_Comm handle;
    eb_communicator *communicator;
  } remembered[EB_NUM_REMEMBERED];
  /* Predefined datatypes, looked up already: their handles are never given to another one. */
  struct {
    MPI_Datatype handle;
    uint64_t size_bytes; /* 0: free */
  } sizes[EB_NUM_REMEMBERED];
  void *scratch;
  size_t scratch_bytes;
  struct eb_persistent *persistent; /* the persistent collective that the call creates; NULL: none */
  uint64_t traced_number;           /* of the last record of the thread in the trace; 0: none */
  /* The request that the next records of the trace are of: its serial number, and when it was posted. 0: none */
  uint32_t request;
  uint64_t posted_ticks;
  bool is_opening; /* the present call has started `opened`, of which its record in the trace says more */
  eb_request opened;
  uint16_t places[EB_AWAITED_REQUESTS]; /* of the requests that the present call waits for */
  uint64_t joined_ticks;                /* in recorded waits for other threads of the process */
  void (*at_end)(struct eb_thread *);   /* adds to the trace that it ends; NULL: nothing */
} eb_thread;

/* Standard sends are synchronous. */
EB_OWN extern bool eb_sends_are_synchronous;

/* Only pages are kept, as for `earlybird exec --stuck`: calls and messages are not counted, and nothing has epochs. */
EB_OWN extern bool eb_recorder_keeps_only_pages;
static inline bool eb_recorder_counts(void) { return !__builtin_expect(eb_recorder_keeps_only_pages, 0); }

/* Recording has begun and not ended. */
EB_OWN extern bool eb_recorder_is_on;

/* The same of pages alone, of a program of which one thread calls the MPI and that has cancelled nothing: see calls/quick.h. */
EB_OWN extern bool eb_recorder_is_quick;

/* Preloaded, so the loader has room for it among the variables that need no function call. */
extern __thread eb_thread *eb_thread_current __attribute__((tls_model("initial-exec")));

/* Several threads may call the MPI at once, whatever MPI_Query_thread says: a session has a thread level of its own. */
void eb_recorder_expect_threads(void);

/* Before the first call: sizes of predefined datatypes. */
void eb_usual_types_begin(void);

/* The first call of a thread. NULL if memory is short. */
eb_thread *eb_thread_begin(void);

/* Memory of the thread until its next call of this function; NULL if memory is short. */
void *eb_thread_scratch(eb_thread *thread, size_t bytes);

/* All threads', the newest first. */
eb_thread *eb_threads_first(void);

/* Writes what the thread has counted since the last time. */
void eb_recorder_write(eb_thread *thread);

/* The same for the case that the present call never returns: to be replaced by the next writing. */
void eb_recorder_keep(eb_thread *thread);

/* Writes the trace, where half of its ring in memory is new. */
void eb_recorder_write_trace(void);

/* At the end of MPI_Init. */
void eb_recorder_begin(void);

/* Is the calling thread that one? */
bool eb_recorder_is_of_first_thread(void);

/* Ends the epoch of a thread that ends, perhaps while another one is in MPI_Finalize. */
void eb_recorder_end_epoch(eb_thread *thread);

/* Writes everything; with `how` ("finalize", "exit", "abort") also that the rank has ended, and how. */
void eb_recorder_flush(const char *how);

/* The thread calls the MPI from this frame and seems to be in a call. Has an error handler jumped out of it, or thrown an exception?
 * Then it is ended. */
bool eb_thread_has_left(eb_thread *thread, const char *frame);

/* A call that is being recorded; without a thread it is not. */
typedef struct {
  eb_thread *thread;
  bool has_failed; /* then no argument may be looked at: the MPI would raise a second error for a wrong handle */
  uint32_t request; /* serial number of the receive that a blocking call posts; 0: none, or no trace */
  uint64_t begin_ticks, ticks;
} eb_span;

/* When the call begins. Of pages alone nobody wants to know for how long it lasts, and reading the clock takes longer than all
 * else. */
static inline uint64_t eb_span_now(const eb_call *call) {
  if (eb_recorder_counts()) return eb_recorder_ticks();
  return call->kind == EB_CALL_POLL ? eb_page_now_ns() : eb_page_next_ns();
}

/* Begins to change the place of the thread: eb_span_wait follows, before the MPI is called. */
__attribute__((always_inline)) static inline eb_span eb_span_open_of(const eb_call *call, eb_caller caller) {
  eb_span span = {NULL, false, 0, 0, 0};
  if (!__atomic_load_n(&eb_recorder_is_on, __ATOMIC_RELAXED)) return span;
  eb_thread *thread = eb_thread_current ? eb_thread_current : eb_thread_begin();
  if (!thread || (thread->is_inside && !eb_thread_has_left(thread, caller.frame))) return span;
  thread->is_inside = true;
  thread->frame = caller.frame;
  span.thread = thread;
  const eb_step present = {eb_site_of(&thread->sites, caller), eb_call_number(call)};
  if (eb_recorder_counts()) eb_epoch_enter(&thread->epoch, &thread->table, present, call->kind);
  else thread->epoch.present = present;
  span.begin_ticks = eb_span_now(call);
  eb_open_call *const open = thread->open;
  eb_open_call_change(open);
  open->site = (uint64_t)(uintptr_t)present.site;
  open->call = present.call;
  open->communicator = 0;
  open->peer = EB_PEER_NONE;
  open->tag = EB_TAG_NONE;
  open->bytes = EB_BYTES_UNKNOWN;
  if (call->kind != EB_CALL_POLL) {
    open->progress++;
    open->polling_ticks = 0;
    eb_awaited_call *const awaited = thread->awaited;
    awaited->serial++;
    awaited->num = awaited->num_left_out = 0;
    awaited->send_peer = awaited->root = EB_PEER_NONE;
    awaited->number = 0;
  } else if (open->polling_ticks == 0) {
    open->polling_ticks = span.begin_ticks;
  }
  __atomic_store_n(&open->begin_ticks, span.begin_ticks, __ATOMIC_RELAXED);
  return span;
}

/* All is known of the call that begins. */
static inline void eb_span_wait(eb_span *span) {
  eb_thread *const thread = span->thread;
  if (!thread) return;
  eb_open_call_changed(thread->open);
  if (eb_recorder_counts()) eb_epoch_rest(&thread->epoch);
  if (__builtin_expect(span->begin_ticks >= thread->keep_ticks, 0)) {
    eb_recorder_keep(thread);
    if (eb_recorder_counts()) span->begin_ticks = eb_recorder_ticks(); /* else the next call would seem to begin before */
    __atomic_store_n(&thread->open->begin_ticks, span->begin_ticks, __ATOMIC_RELEASE);
  }
  if (eb_recorder_counts() && thread->epoch.begin_ticks == 0) thread->epoch.begin_ticks = span->begin_ticks;
}

/* Inlined, because the return address is that of the wrapper. */
#define EB_CALLER ((eb_caller){__builtin_return_address(0), __builtin_dwarf_cfa()})
__attribute__((always_inline)) static inline eb_span eb_span_open(const eb_call *call) { return eb_span_open_of(call, EB_CALLER); }

/* Both, for a call of which no more is known. */
__attribute__((always_inline)) static inline eb_span eb_span_begin(const eb_call *call) {
  eb_span span = eb_span_open_of(call, EB_CALLER);
  eb_span_wait(&span);
  return span;
}

/* The call has returned; what follows is the recorder's own time. False: it is not recorded. */
static inline bool eb_span_returned(eb_span *span, int rc) {
  if (!span->thread) return false;
  span->has_failed = rc != MPI_SUCCESS;
  if (!eb_recorder_counts()) return true;
  span->ticks = eb_recorder_ticks() - span->begin_ticks;
  eb_epoch_resume(&span->thread->epoch);
  span->thread->epoch.end_ticks = span->begin_ticks + span->ticks;
  return true;
}

/* The call has started a request of which nothing is counted later. Between the two the call is counted. */
static inline void eb_span_opens(const eb_span *span) {
  eb_thread *const thread = span->thread;
  eb_epoch_open(&thread->epoch);
  if (!eb_requests_include_others) return;
  const uint32_t serial = eb_trace_post();
  thread->opened = (eb_request){.kind = EB_REQUEST_OTHER,
                                .call = thread->epoch.present.call,
                                .peer = EB_PEER_NONE,
                                .tag = EB_TAG_NONE,
                                .serial = serial,
                                .what = eb_traced_what(0, EB_ROLE_CALL, EB_TRACED_COMPLETION),
                                .is_active = true,
                                .posted_ticks = span->begin_ticks};
  thread->is_opening = true;
  thread->request = serial;
}
static inline void eb_span_opened(const eb_span *span, const MPI_Request *request) {
  if (!eb_requests_include_others) return;
  span->thread->is_opening = false;
  span->thread->request = 0;
  eb_requests_add(eb_request_key(*request), &span->thread->opened);
}
/* One that is known to requests.h; or the call has completed some. */
static inline void eb_span_started(const eb_span *span) { eb_epoch_open(&span->thread->epoch); }
/* Could the call complete anything that this thread or another one has started? Of pages alone that is not counted. */
static inline bool eb_span_may_complete(const eb_span *span) {
  return span->thread && (!eb_recorder_counts() || span->thread->epoch.num_open > 0 || eb_requests_any());
}
static inline void eb_span_closed(const eb_span *span, uint32_t num) { eb_epoch_close(&span->thread->epoch, num); }

/* All is counted. */
static inline void eb_span_end(eb_span *span) {
  if (eb_recorder_counts()) {
    if (span->thread->epoch.is_over) eb_epoch_end(&span->thread->epoch, &span->thread->table);
    if (__builtin_expect(span->begin_ticks + span->ticks >= span->thread->due_ticks, 0)) eb_recorder_write(span->thread);
  }
  eb_open_call *const open = span->thread->open;
  eb_open_call_change(open);
  if (open->polling_ticks == 0) open->progress++;
  open->ended_ticks = eb_recorder_counts() ? span->begin_ticks + span->ticks : eb_page_now_ns();
  __atomic_store_n(&open->begin_ticks, 0, __ATOMIC_RELAXED);
  eb_open_call_changed(open);
  span->thread->is_inside = false;
}

/* The size of a datatype that the thread does not remember. */
uint64_t eb_type_bytes(eb_thread *thread, MPI_Datatype type, unsigned hash);

_Static_assert(EB_NUM_REMEMBERED == 16, "hashes of handles have four bits");
static inline unsigned eb_handle_hash(uintptr_t handle) { return (unsigned)((uint64_t)handle * 0x9e3779b97f4a7c15u >> 60); }

/* Of so many elements of a datatype, without its gaps. */
static inline uint64_t eb_bytes(const eb_span *span, int64_t count, MPI_Datatype type) {
  if (count <= 0 || span->has_failed) return 0;
  const unsigned hash = eb_handle_hash((uintptr_t)type);
  const uint64_t size_bytes = span->thread->sizes[hash].handle == type ? span->thread->sizes[hash].size_bytes : 0;
  return (uint64_t)count * (__builtin_expect(size_bytes > 0, 1) ? size_bytes : eb_type_bytes(span->thread, type, hash));
}

/* The size of a predefined datatype that the thread does not remember; 0: it is none of the usual ones. */
uint64_t eb_usual_type_bytes(eb_thread *thread, MPI_Datatype type, unsigned hash);

/* The same before the call, when a wrong handle may not be looked at: EB_BYTES_UNKNOWN of datatypes of the program. */
static inline uint64_t eb_known_bytes(const eb_span *span, int64_t count, MPI_Datatype type) {
  if (!span->thread || count < 0) return EB_BYTES_UNKNOWN;
  const unsigned hash = eb_handle_hash((uintptr_t)type);
  uint64_t size_bytes = span->thread->sizes[hash].handle == type ? span->thread->sizes[hash].size_bytes : 0;
  if (__builtin_expect(size_bytes == 0, 0)) size_bytes = eb_usual_type_bytes(span->thread, type, hash);
  return size_bytes > 0 ? (uint64_t)count * size_bytes : EB_BYTES_UNKNOWN;
}

/* NULL for MPI_COMM_NULL, and where the MPI cannot say. */
static inline eb_communicator *eb_span_communicator(const eb_span *span, MPI_Comm comm) {
  eb_thread *thread = span->thread;
  const uint32_t generation = __atomic_load_n(&eb_communicators_generation, __ATOMIC_ACQUIRE);
  const unsigned hash = eb_handle_hash((uintptr_t)comm);
  if (__builtin_expect(thread->generation == generation && thread->remembered[hash].handle == comm &&
                           thread->remembered[hash].communicator,
                       1))
    return thread->remembered[hash].communicator;
  if (comm == MPI_COMM_NULL || span->has_failed) return NULL;
  if (thread->generation != generation) {
    for (int r = 0; r < EB_NUM_REMEMBERED; r++) thread->remembered[r].communicator = NULL;
    thread->generation = generation;
  }
  thread->remembered[hash].handle = comm;
  return thread->remembered[hash].communicator = eb_communicator_of(comm);
}

static inline int eb_world_rank(const eb_communicator *communicator, int rank) {
  if (rank == MPI_PROC_NULL) return EB_PEER_NULL;
  if (rank == MPI_ANY_SOURCE) return EB_PEER_ANY;
  return communicator ? eb_members_world_rank(&communicator->peers, rank) : EB_PEER_OUTSIDE;
}

/* 0: of none. */
static inline uint32_t eb_number_of(const eb_communicator *communicator) { return communicator ? communicator->number : 0; }

/* Keeps an event in the trace. `tag`: of a message, EB_TAG_NONE if the call has none. */
void eb_span_trace(const eb_span *span, uint64_t what, int peer, int tag, uint32_t calls, uint64_t bytes);

static inline void eb_add(const eb_span *span, unsigned call, eb_role role, const eb_communicator *communicator, int peer, int tag,
                          uint32_t calls, uint32_t messages, uint64_t bytes, uint64_t ticks) {
  if (!eb_recorder_counts()) return;
  const eb_event event = {
      eb_what(call, role, eb_size_class(bytes), eb_number_of(communicator)), peer, messages, calls, bytes, ticks};
  eb_epoch_add(&span->thread->epoch, &span->thread->table, &event);
  if (eb_trace_is_on()) eb_span_trace(span, event.what, peer, tag, calls, bytes);
}

/* The communicator of a handle, where it is known before the call: a wrong handle may not be looked at. */
static inline eb_communicator *eb_span_known(const eb_span *span, MPI_Comm comm) {
  const eb_thread *thread = span->thread;
  const unsigned hash = eb_handle_hash((uintptr_t)comm);
  if (__builtin_expect(thread->generation == __atomic_load_n(&eb_communicators_generation, __ATOMIC_ACQUIRE) &&
                           thread->remembered[hash].handle == comm && thread->remembered[hash].communicator,
                       1))
    return thread->remembered[hash].communicator;
  return comm == MPI_COMM_WORLD || eb_identity_is_of_program(comm) ? eb_span_communicator(span, comm) : NULL;
}

/* Whom the call that begins is about: for the case that it never returns. Before eb_span_wait, as the next two. */
static inline void eb_span_about(const eb_span *span, int rank, int tag, MPI_Comm comm, uint64_t bytes) {
  if (!span->thread) return;
  const eb_communicator *communicator = eb_span_known(span, comm);
  eb_open_call *const open = span->thread->open;
  open->communicator = eb_number_of(communicator);
  open->tag = tag >= 0 ? tag : EB_TAG_NONE;
  open->bytes = bytes;
  if (communicator) open->peer = eb_world_rank(communicator, rank);
}
/* The same of what the call also sends. */
static inline void eb_span_also_sends(const eb_span *span, int rank, int tag, MPI_Comm comm, uint64_t bytes) {
  if (!span->thread) return;
  const eb_communicator *communicator = eb_span_known(span, comm);
  if (!communicator) return;
  span->thread->awaited->send_bytes = bytes;
  span->thread->awaited->send_tag = tag;
  span->thread->awaited->send_peer = eb_world_rank(communicator, rank);
}

/* The call is a collective; `root` is a rank of the communicator, or EB_NO_ROOT. A communicator that is not known yet is counted
 * after the call, by eb_span_entered. */
#define EB_NO_ROOT (-1)
static inline void eb_span_enters(const eb_span *span, MPI_Comm comm, int root, uint64_t bytes) {
  if (!span->thread) return;
  const eb_communicator *communicator = eb_span_known(span, comm);
  if (!communicator) return;
  eb_open_call *const open = span->thread->open;
  const int world_root = root >= 0 ? eb_world_rank(communicator, root) : EB_PEER_NONE;
  open->communicator = communicator->number;
  open->bytes = bytes;
  span->thread->awaited->root = world_root;
  span->thread->awaited->number = eb_awaited_enter(communicator->awaited, open->call, world_root, bytes, open->site);
}
static inline void eb_span_entered(const eb_span *span, unsigned call, const eb_communicator *communicator, int root,
                                   uint64_t bytes) {
  eb_awaited_call *const awaited = span->thread->awaited;
  if (communicator && awaited->number == 0)
    awaited->number = eb_awaited_enter(communicator->awaited, call, root, bytes, span->thread->open->site);
}

/* The call has started the request. Of MPI_PROC_NULL there is nothing to wait for. `communicator`, `number`: of a collective also the
 * number of what it was created over that communicator, and the collective's in it. */
static inline void eb_span_posts_on(const eb_span *span, MPI_Request request, eb_awaited_kind kind, unsigned call,
                                    uint32_t communicator, uint64_t number, int peer, int tag, uint64_t bytes,
                                    uint32_t partitions) {
  if (peer == EB_PEER_NULL) kind = EB_AWAITED_NOTHING;
  const uint64_t key = eb_request_key(request);
  const uint32_t place = eb_awaited_place(key, kind);
  if (place == EB_AWAITED_REQUESTS) return;
  const eb_awaited_request posted = {
      .posted_ticks = span->begin_ticks,
      .site = span->thread->open->site,
      .partitions = partitions,
      .thread = UINT16_MAX,
      .bytes = bytes,
      .number = number,
      .call = call,
      .communicator = communicator,
      .peer = peer,
      .tag = tag >= 0 ? tag : EB_TAG_NONE,
      .kind = (uint16_t)kind,
  };
  eb_awaited_post(place, key, &posted);
}
static inline void eb_span_posts(const eb_span *span, MPI_Request request, eb_awaited_kind kind, unsigned call,
                                 const eb_communicator *communicator, int peer, int tag, uint64_t bytes, uint32_t partitions) {
  const uint64_t number = kind == EB_AWAITED_COLLECTIVE ? span->thread->awaited->number : 0;
  eb_span_posts_on(span, request, kind, call, eb_number_of(communicator), number, peer, tag, bytes, partitions);
}

/* The call is a blocking receive, which the MPI matches from its begin on. */
static inline void eb_span_receives(eb_span *span) {
  if (span->thread) span->request = eb_trace_post();
}

/* The next records are of the request with this number, posted at that time; of none. */
static inline void eb_span_of_request(const eb_span *span, uint32_t serial, uint64_t posted_ticks) {
  span->thread->request = serial;
  span->thread->posted_ticks = posted_ticks;
}
static inline void eb_span_of_none(const eb_span *span) { eb_span_of_request(span, 0, 0); }

/* A call without a message of its own to one peer, or one that failed. */
static inline void eb_add_call(const eb_span *span, unsigned call, const eb_communicator *communicator, int peer, uint64_t bytes) {
  eb_add(span, call, EB_ROLE_CALL, communicator, peer, EB_TAG_NONE, 1, 0, bytes, span->ticks);
}

/* The message of a call whose time is counted elsewhere. Without a peer there is none. */
static inline void eb_add_message(const eb_span *span, unsigned call, eb_role role, const eb_communicator *communicator, int peer,
                                  int tag, uint64_t bytes) {
  if (peer == EB_PEER_NULL) return;
  eb_add(span, call, role, communicator, peer, tag, 0, 1, bytes, 0);
  if (tag >= 0) eb_awaited_message(role == EB_ROLE_SENT, eb_number_of(communicator), peer, tag, bytes);
}
/* The same of a partitioned one, which no other receive takes. */
static inline void eb_add_partitioned(const eb_span *span, eb_role role, const eb_request *request) {
  if (request->peer == EB_PEER_NULL) return;
  eb_add(span, request->call, role, request->communicator, request->peer, request->tag, 0, 1, request->bytes, 0);
}

/* A call that is one message. To MPI_PROC_NULL it is only a call. */
static inline void eb_add_call_message(const eb_span *span, unsigned call, eb_role role, const eb_communicator *communicator,
                                       int peer, int tag, uint64_t bytes) {
  if (peer == EB_PEER_NULL) {
    eb_add_call(span, call, communicator, peer, 0);
    return;
  }
  eb_add(span, call, role, communicator, peer, tag, 1, 1, bytes, span->ticks);
  if (tag >= 0) eb_awaited_message(role == EB_ROLE_SENT, eb_number_of(communicator), peer, tag, bytes);
}

/* The message that a call has sent, or received, of which all is as eb_span_about has noted it: the fast way if only pages are
 * kept. False: it is to be counted otherwise. */
static inline bool eb_span_is_message(const eb_span *span, eb_role role) {
  const eb_open_call *const open = span->thread->open;
  if (eb_recorder_counts() || span->has_failed || open->communicator == 0 || open->bytes == EB_BYTES_UNKNOWN) return false;
  if (open->peer == EB_PEER_NULL) return true;
  if (open->peer < 0 || open->tag < 0) return false;
  eb_awaited_message(role == EB_ROLE_SENT, open->communicator, open->peer, open->tag, open->bytes);
  return true;
}

/* What a status says of a message. */
uint64_t eb_status_bytes(const MPI_Status *status);

/* A program has called MPI_Cancel: receives may complete without a message. */
extern bool eb_is_any_cancelled;

/* Keeps in the trace that the call has started a receive of this description. */
void eb_span_trace_start(const eb_span *span, const eb_request *request);

/* Counts the message of a request that has completed, if it is known. `is_freed`: the MPI has set the handle to null.
 * Returns whether the request had been started. */
bool eb_request_completed(const eb_span *span, uint64_t key, eb_ticket ticket, bool is_freed, const MPI_Status *status);

#endif
