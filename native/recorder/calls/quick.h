/* The calls that programs make most often, where only pages are kept and one thread calls the MPI: nothing is counted, no clock is
 * read, and only words of the page are written that readers look at for this call.
 *
 * Each function below finds out whether all is known that it writes, before it writes anything. What is not yet known, such as a
 * communicator at its first use, and what is rare, is left to the other way, which finds it out.
 */
#ifndef EB_QUICK_H
#define EB_QUICK_H

#include "recorder/recording/recorder.h"

#define EB_QUICK static inline __attribute__((always_inline))

/* Of the thread whose call may be quick, or NULL. */
EB_QUICK eb_thread *eb_quick_thread(eb_caller caller) {
  if (!eb_recorder_is_quick) return NULL;
  eb_thread *const thread = eb_thread_current;
  if (!thread || thread->is_inside || thread->sites.plain[eb_site_hash(caller.address)] != caller.address) return NULL;
  return thread;
}

/* NULL: not known to the thread. */
EB_QUICK const eb_communicator *eb_quick_communicator(const eb_thread *thread, MPI_Comm comm) {
  const unsigned hash = eb_handle_hash((uintptr_t)comm);
  if (thread->generation != eb_communicators_generation || thread->remembered[hash].handle != comm) return NULL;
  return thread->remembered[hash].communicator;
}

/* 0: not known to the thread. */
EB_QUICK uint64_t eb_quick_type_bytes(const eb_thread *thread, MPI_Datatype type) {
  const unsigned hash = eb_handle_hash((uintptr_t)type);
  return thread->sizes[hash].handle == type ? thread->sizes[hash].size_bytes : 0;
}

/* When the call begins, later than all before; 0: the clock is to be read, or what is counted to be kept. */
EB_QUICK uint64_t eb_quick_now(const eb_thread *thread) {
  const uint64_t now_ns = eb_page_current->awaited.now_ns, next_ns = eb_page_last_ns + EB_PAGE_STEP_NS;
  if (now_ns <= eb_page_current->awaited.begin_ns || now_ns >= thread->keep_ticks) return 0;
  return eb_page_last_ns = now_ns > next_ns ? now_ns : next_ns;
}

/* The thread enters the call: eb_quick_entered follows when its place says all. Returns the turn for that. */
EB_QUICK uint64_t eb_quick_enter(eb_thread *thread, eb_caller caller, const eb_call *call, uint64_t now_ns) {
  eb_open_call *const open = thread->open;
  const uint64_t turn = (open->turn_and_progress + 1) | 1;
  thread->is_inside = true;
  thread->frame = caller.frame;
  __atomic_store_n(&open->turn_and_progress, turn, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  open->site = (uint64_t)(uintptr_t)caller.address;
  open->call = call->number;
  open->polling_ticks = 0;
  __atomic_store_n(&open->begin_ticks, now_ns, __ATOMIC_RELAXED);
  return turn;
}
/* The call is about no peer: what the one before it was about is not shown. */
EB_QUICK void eb_quick_about_none(eb_open_call *open) {
  open->peer = EB_PEER_NONE;
  open->tag = EB_TAG_NONE;
}
#define EB_QUICK_PROGRESS ((uint64_t)1 << 32)
EB_QUICK void eb_quick_entered(eb_thread *thread, uint64_t turn) {
  __atomic_store_n(&thread->open->turn_and_progress, turn + 1 + EB_QUICK_PROGRESS, __ATOMIC_RELEASE);
}

/* The same of a call that polls, which is no progress; all is done. False: not quick. */
EB_QUICK bool eb_quick_poll(eb_thread *thread, eb_caller caller, const eb_call *call) {
  eb_open_call *const open = thread->open;
  const uint64_t now_ns = eb_page_current->awaited.now_ns;
  if (now_ns <= eb_page_current->awaited.begin_ns || now_ns >= thread->keep_ticks) return false;
  const uint64_t turn = (open->turn_and_progress + 1) | 1;
  thread->is_inside = true;
  thread->frame = caller.frame;
  __atomic_store_n(&open->turn_and_progress, turn, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  open->site = (uint64_t)(uintptr_t)caller.address;
  open->call = call->number;
  open->communicator = 0;
  open->bytes = EB_BYTES_UNKNOWN;
  eb_quick_about_none(open);
  if (open->polling_ticks == 0) open->polling_ticks = now_ns;
  __atomic_store_n(&open->begin_ticks, now_ns, __ATOMIC_RELAXED);
  __atomic_store_n(&open->turn_and_progress, turn + 1, __ATOMIC_RELEASE);
  return true;
}
EB_QUICK void eb_quick_polled(eb_thread *thread, uint32_t num_completed) {
  eb_open_call *const open = thread->open;
  const uint64_t now_ns = eb_page_current->awaited.now_ns;
  open->ended_ticks = now_ns;
  if (num_completed > 0) open->polling_ticks = now_ns;
  __atomic_store_n(&open->begin_ticks, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&open->turn_and_progress, open->turn_and_progress + 2 + num_completed * EB_QUICK_PROGRESS, __ATOMIC_RELEASE);
  thread->is_inside = false;
}

/* The call has returned, and completed so many requests. Whoever reads in between sees a thread that is in no call, as it is. */
EB_QUICK void eb_quick_leave(eb_thread *thread, uint32_t num_completed) {
  eb_open_call *const open = thread->open;
  open->ended_ticks = eb_page_current->awaited.now_ns;
  __atomic_store_n(&open->begin_ticks, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&open->turn_and_progress, open->turn_and_progress + 2 + (1 + (uint64_t)num_completed) * EB_QUICK_PROGRESS,
                   __ATOMIC_RELEASE);
  thread->is_inside = false;
}

/* The peer of a call as a rank of MPI_COMM_WORLD. False: not one that is known. */
EB_QUICK bool eb_quick_peer(const eb_communicator *communicator, int rank, int *peer) {
  const eb_members *const peers = &communicator->peers;
  *peer = EB_PEER_NULL;
  if (rank == MPI_PROC_NULL) return true;
  if ((unsigned)rank >= (unsigned)peers->num) return false; /* also MPI_ANY_SOURCE */
  *peer = peers->listed ? peers->listed[rank] : peers->first + peers->stride * rank;
  return *peer >= 0;
}

/* A call that sends or receives one message, or starts that. NULL: not quick. */
EB_QUICK eb_thread *eb_quick_message(eb_caller caller, const eb_call *call, int64_t count, MPI_Datatype type, int rank, int tag,
                                     MPI_Comm comm) {
  eb_thread *const thread = eb_quick_thread(caller);
  if (!thread || count < 0 || tag < 0) return NULL;
  const eb_communicator *const communicator = eb_quick_communicator(thread, comm);
  const uint64_t size_bytes = eb_quick_type_bytes(thread, type);
  if (!communicator || size_bytes == 0) return NULL;
  int peer;
  if (!eb_quick_peer(communicator, rank, &peer)) return NULL;
  const uint64_t now_ns = eb_quick_now(thread);
  if (now_ns == 0) return NULL;
  const uint64_t turn = eb_quick_enter(thread, caller, call, now_ns);
  eb_open_call *const open = thread->open;
  open->communicator = communicator->number;
  open->peer = peer;
  open->tag = tag;
  open->bytes = (uint64_t)count * size_bytes;
  thread->awaited->send_peer = EB_PEER_NONE;
  thread->awaited->number = 0;
  eb_quick_entered(thread, turn);
  return thread;
}

/* One that sends a message and receives another one. NULL: not quick. */
EB_QUICK eb_thread *eb_quick_exchange(eb_caller caller, const eb_call *call, int64_t sendcount, MPI_Datatype sendtype, int dest,
                                      int sendtag, int64_t recvcount, MPI_Datatype recvtype, int source, int recvtag,
                                      MPI_Comm comm) {
  eb_thread *const thread = eb_quick_thread(caller);
  if (!thread || sendcount < 0 || recvcount < 0 || sendtag < 0 || recvtag < 0) return NULL;
  const eb_communicator *const communicator = eb_quick_communicator(thread, comm);
  const uint64_t send_bytes = eb_quick_type_bytes(thread, sendtype), receive_bytes = eb_quick_type_bytes(thread, recvtype);
  int to, from;
  if (!communicator || send_bytes == 0 || receive_bytes == 0) return NULL;
  if (!eb_quick_peer(communicator, dest, &to) || !eb_quick_peer(communicator, source, &from)) return NULL;
  const uint64_t now_ns = eb_quick_now(thread);
  if (now_ns == 0) return NULL;
  const uint64_t turn = eb_quick_enter(thread, caller, call, now_ns);
  eb_open_call *const open = thread->open;
  open->communicator = communicator->number;
  open->peer = from;
  open->tag = recvtag;
  open->bytes = (uint64_t)recvcount * receive_bytes;
  thread->awaited->send_peer = to;
  thread->awaited->send_tag = sendtag;
  thread->awaited->send_bytes = (uint64_t)sendcount * send_bytes;
  eb_quick_entered(thread, turn);
  return thread;
}

/* A message was sent, or received. */
EB_QUICK void eb_quick_add(bool is_sent, uint32_t communicator, int32_t peer, int32_t tag, uint64_t bytes) {
  eb_awaited_channel *const channel = eb_awaited_channel_at(communicator, peer, tag);
  if (channel->is_used != 2 || !eb_awaited_is_channel(channel, communicator, peer, tag)) {
    eb_awaited_message(is_sent, communicator, peer, tag, bytes);
    return;
  }
  if (is_sent) channel->sent_bytes = bytes;
  uint64_t *const num = is_sent ? &channel->sent : &channel->received;
  __atomic_store_n(num, *num + 1, __ATOMIC_RELAXED);
}

/* The message of such a call. */
EB_QUICK void eb_quick_count(const eb_thread *thread, bool is_sent) {
  const eb_open_call *const open = thread->open;
  if (open->peer >= 0) eb_quick_add(is_sent, open->communicator, open->peer, open->tag, open->bytes);
}

/* Both messages of an exchange. */
EB_QUICK void eb_quick_count_both(const eb_thread *thread) {
  const eb_open_call *const open = thread->open;
  const eb_awaited_call *const awaited = thread->awaited;
  if (awaited->send_peer >= 0) eb_quick_add(true, open->communicator, awaited->send_peer, awaited->send_tag, awaited->send_bytes);
  eb_quick_count(thread, false);
}

/* The first place of a key, where it is to be put; EB_AWAITED_REQUESTS: it is used, or the key is in one of the others. */
EB_QUICK uint32_t eb_quick_place(uint64_t key) {
  const uint32_t place = eb_awaited_places_of(key);
  const uint64_t *const keys = &eb_page_current->keys[place];
  bool is_there = keys[0] != 0;
  for (int p = 1; p < EB_AWAITED_PROBES; p++) is_there |= keys[p] == key;
  return is_there ? EB_AWAITED_REQUESTS : place;
}

/* The request that such a call has started. */
EB_QUICK void eb_quick_post(const eb_thread *thread, MPI_Request handle, eb_awaited_kind kind) {
  const eb_open_call *const open = thread->open;
  const uint64_t key = eb_request_key(handle);
  if (open->peer < 0) kind = EB_AWAITED_NOTHING;
  if (kind != EB_AWAITED_RECEIVE && eb_awaited_is_done(key)) return;
  eb_page *const page = eb_page_current;
  uint32_t place = eb_awaited_is_done(key) ? EB_AWAITED_REQUESTS : eb_quick_place(key);
  if (place == EB_AWAITED_REQUESTS) place = eb_awaited_place(key, kind);
  if (place == EB_AWAITED_REQUESTS) return;
  eb_awaited_request *const request = &page->requests[place];
  request->posted_ticks = open->begin_ticks;
  request->bytes = open->bytes;
  request->number = 0;
  request->site = open->site;
  request->call = open->call;
  request->communicator = open->communicator;
  request->peer = open->peer;
  request->tag = open->tag;
  request->kind = (uint16_t)kind;
  request->thread = UINT16_MAX;
  request->partitions = request->num_ready = 0;
  __atomic_store_n(&page->keys[place], key, __ATOMIC_RELEASE);
}

/* A persistent request is started, which has been started before. */
EB_QUICK bool eb_quick_is_started(uint64_t key) { return eb_awaited_started_keys[eb_awaited_started_at(key)] == key; }
EB_QUICK void eb_quick_start(const eb_thread *thread, uint64_t key) {
  const eb_open_call *const open = thread->open;
  const eb_awaited_request *const started = &eb_awaited_started[eb_awaited_started_at(key)];
  eb_page *const page = eb_page_current;
  uint32_t place = eb_quick_place(key);
  if (place == EB_AWAITED_REQUESTS) place = eb_awaited_place(key, started->kind);
  if (started->kind == EB_AWAITED_SEND) eb_quick_add(true, started->communicator, started->peer, started->tag, started->bytes);
  if (place == EB_AWAITED_REQUESTS) return;
  eb_awaited_request *const request = &page->requests[place];
  *request = *started;
  request->posted_ticks = open->begin_ticks;
  request->site = open->site;
  __atomic_store_n(&page->keys[place], key, __ATOMIC_RELEASE);
}

/* A call that waits for requests, which eb_quick_mark has marked; their number. */
EB_QUICK void eb_quick_wait(eb_thread *thread, eb_caller caller, const eb_call *call, uint64_t now_ns, uint32_t num) {
  const uint64_t turn = eb_quick_enter(thread, caller, call, now_ns);
  eb_awaited_call *const awaited = thread->awaited;
  thread->open->communicator = 0;
  thread->open->bytes = EB_BYTES_UNKNOWN;
  eb_quick_about_none(thread->open);
  awaited->serial++;
  awaited->num = num;
  awaited->num_left_out = 0;
  eb_quick_entered(thread, turn);
}

enum { EB_QUICK_NO_PLACE = UINT16_MAX };

/* Before: where the request is, EB_QUICK_NO_PLACE if it is complete or null. False: not known, or its status is needed. */
EB_QUICK bool eb_quick_find(MPI_Request handle, uint16_t *place) {
  const uint64_t key = eb_request_key(handle);
  *place = EB_QUICK_NO_PLACE;
  if (handle == MPI_REQUEST_NULL || eb_awaited_is_done(key)) return true;
  const uint64_t *const keys = eb_page_current->keys;
  uint32_t at = eb_awaited_places_of(key);
  const uint32_t end = at + EB_AWAITED_PROBES;
  while (keys[at] != key)
    if (++at == end) return false;
  *place = (uint16_t)at;
  return !eb_awaited_is_wild(&eb_page_current->requests[at]);
}
/* The same of one that the thread will wait for. Marks are as the other way makes them, if the call is not quick. */
EB_QUICK bool eb_quick_mark(const eb_thread *thread, MPI_Request handle, uint16_t *place) {
  if (!eb_quick_find(handle, place)) return false;
  if (*place == EB_QUICK_NO_PLACE) return true;
  eb_awaited_request *const request = &eb_page_current->requests[*place];
  request->thread = (uint16_t)thread->number;
  request->serial = thread->awaited->serial + 1;
  return true;
}

/* It has completed. */
EB_QUICK void eb_quick_complete(uint32_t place) {
  const eb_awaited_request *const request = &eb_page_current->requests[place];
  __atomic_store_n(&eb_page_current->keys[place], 0, __ATOMIC_RELEASE);
  if (request->kind == EB_AWAITED_RECEIVE)
    eb_quick_add(false, request->communicator, request->peer, request->tag, EB_BYTES_UNKNOWN);
}

/* Has a call that has failed completed the request? As in calls/completion.c. */
EB_QUICK bool eb_quick_is_complete(int rc, MPI_Request after, const MPI_Status *status) {
  if (rc == MPI_SUCCESS || after == MPI_REQUEST_NULL) return true;
  return rc == MPI_ERR_IN_STATUS && status && status->MPI_ERROR != MPI_ERR_PENDING;
}

/* A collective that is not a request; `root` as in eb_span_enters, `type` MPI_DATATYPE_NULL if its size is not compared. NULL: not
 * quick. */
EB_QUICK eb_thread *eb_quick_collective(eb_caller caller, const eb_call *call, MPI_Comm comm, int root, int64_t count,
                                        MPI_Datatype type) {
  eb_thread *const thread = eb_quick_thread(caller);
  if (!thread) return NULL;
  const eb_communicator *const communicator = eb_quick_communicator(thread, comm);
  if (!communicator) return NULL;
  uint64_t bytes = EB_BYTES_UNKNOWN;
  if (type != MPI_DATATYPE_NULL) {
    const uint64_t size_bytes = eb_quick_type_bytes(thread, type);
    if (size_bytes == 0 || count < 0) return NULL;
    bytes = (uint64_t)count * size_bytes;
  }
  const int world_root = root >= 0 ? eb_world_rank(communicator, root) : EB_PEER_NONE;
  const uint64_t now_ns = eb_quick_now(thread);
  if (now_ns == 0) return NULL;
  const uint64_t turn = eb_quick_enter(thread, caller, call, now_ns);
  thread->open->communicator = communicator->number;
  thread->open->bytes = bytes;
  eb_quick_about_none(thread->open);
  /* As eb_awaited_enter. */
  eb_awaited_communicator *const entered = communicator->awaited;
  const uint64_t number = entered->num_entered + 1;
  entered->entered[number % EB_AWAITED_ENTERED] = (eb_awaited_entered){call->number, world_root, bytes,
                                                                       (uint64_t)(uintptr_t)caller.address};
  __atomic_store_n(&entered->num_entered, number, __ATOMIC_RELEASE);
  thread->awaited->root = world_root;
  thread->awaited->number = number;
  eb_quick_entered(thread, turn);
  return thread;
}

#endif
