/* The words that two sides of a direct transfer share, and in which order they are read and written. */
#include "partitioned/node/direct.h"

enum { FAILED = 1 << (EB_CHUNK_BITS - 1) };

static int num_of(uint64_t count) { return (int)(count & (FAILED - 1)); }

void eb_direct_format(void *memory) {
  eb_direct_memory *const shared = memory;
  atomic_store_explicit(&shared->header.is_left, false, memory_order_relaxed);
  atomic_store_explicit(&shared->begun, 0, memory_order_relaxed);
  atomic_store_explicit(&shared->is_waiting, false, memory_order_relaxed);
  atomic_store_explicit(&shared->is_refused, false, memory_order_relaxed);
  atomic_store_explicit(&shared->has_sender_failed, false, memory_order_relaxed);
  for (int s = 0; s < EB_NODE_MAX_SEGMENTS; s++) {
    atomic_store_explicit(&shared->segments[s].claimed, 0, memory_order_relaxed);
    atomic_store_explicit(&shared->segments[s].done, 0, memory_order_relaxed);
  }
  atomic_thread_fence(memory_order_seq_cst); /* the receiver learns by a message where the memory is */
}

void eb_direct_begin(eb_direct *direct, void *memory, bool is_send) { *direct = (eb_direct){.shared = memory, .is_send = is_send}; }

void eb_direct_open(eb_direct *direct, uint64_t start, const void *memory) {
  atomic_store_explicit(&direct->shared->receiver_memory, (uint64_t)(uintptr_t)memory, memory_order_relaxed);
  atomic_store_explicit(&direct->shared->begun, start, memory_order_seq_cst);
}

void eb_direct_set_waiting(eb_direct *direct, bool is_waiting) {
  if (direct->has_left) return;
  atomic_store_explicit(&direct->shared->is_waiting, is_waiting, memory_order_release);
}

/* The other side's part is the store of `begun` and, after it, the load of `claimed`: of the two stores one is first for both. */
void eb_direct_make_ready(eb_direct *direct, uint64_t start, int segment, const void *memory) {
  eb_direct_segment *const of = &direct->shared->segments[segment];
  atomic_store_explicit(&direct->shared->sender_memory, (uint64_t)(uintptr_t)memory, memory_order_relaxed);
  atomic_store_explicit(&of->done, eb_chunk_count(start, 0),
                        memory_order_release); /* it says that all of the start before is copied */
  atomic_store_explicit(&of->claimed, eb_chunk_count(start, 0), memory_order_seq_cst);
}

/* May a sender write into the receiver's memory? */
static bool has_begun(const eb_direct *direct, uint64_t start) {
  return atomic_load_explicit(&direct->shared->begun, memory_order_seq_cst) == start;
}

bool eb_direct_is_awaited(const eb_direct *direct, uint64_t start) {
  return has_begun(direct, start) && atomic_load_explicit(&direct->shared->is_waiting, memory_order_acquire);
}

static bool is_claimable(uint64_t claimed, uint64_t start, int num_chunks) {
  return eb_chunk_start(claimed) == start && num_of(claimed) < num_chunks;
}

bool eb_direct_is_claimable(const eb_direct *direct, uint64_t start, int segment, int num_chunks) {
  const _Atomic uint64_t *const claimed = &direct->shared->segments[segment].claimed;
  return is_claimable(atomic_load_explicit(claimed, memory_order_seq_cst), start, num_chunks) &&
         (!direct->is_send || has_begun(direct, start));
}

int eb_direct_claim(eb_direct *direct, uint64_t start, int segment, int num_chunks) {
  _Atomic uint64_t *const claimed = &direct->shared->segments[segment].claimed;
  uint64_t before = atomic_load_explicit(claimed, memory_order_seq_cst);
  while (is_claimable(before, start, num_chunks) && (!direct->is_send || has_begun(direct, start)))
    if (atomic_compare_exchange_weak_explicit(claimed, &before, before + 1, memory_order_seq_cst, memory_order_seq_cst))
      return num_of(before);
  return -1;
}

void eb_direct_finish(eb_direct *direct, int segment, bool is_copied) {
  _Atomic uint64_t *const done = &direct->shared->segments[segment].done;
  if (!is_copied) atomic_fetch_or_explicit(done, FAILED, memory_order_relaxed);
  atomic_fetch_add_explicit(done, 1, memory_order_release);
}

static bool has_receiver_left(const eb_direct *direct) {
  return direct->is_send && (atomic_load_explicit(&direct->shared->is_refused, memory_order_acquire) ||
                             atomic_load_explicit(&direct->shared->header.is_left, memory_order_acquire));
}

static bool has_sender_failed(const eb_direct *direct) {
  return !direct->is_send && atomic_load_explicit(&direct->shared->has_sender_failed, memory_order_acquire);
}

/* As far as the chunks show. */
static eb_direct_state state_of_chunks(const eb_direct *direct, uint64_t start, int segment, int num_chunks) {
  const uint64_t done = atomic_load_explicit(&direct->shared->segments[segment].done, memory_order_acquire);
  if (eb_chunk_start(done) > start) return EB_DIRECT_DONE;
  const bool is_done = eb_chunk_start(done) == start && num_of(done) == num_chunks;
  return !is_done ? EB_DIRECT_OPEN : done & FAILED ? EB_DIRECT_FAILED : EB_DIRECT_DONE;
}

eb_direct_state eb_direct_state_of(const eb_direct *direct, uint64_t start, int segment, int num_chunks) {
  const eb_direct_state state = state_of_chunks(direct, start, segment, num_chunks);
  /* What the receiver does not want is sent. */
  if (state != EB_DIRECT_DONE && has_receiver_left(direct)) return EB_DIRECT_DONE;
  if (state != EB_DIRECT_OPEN || !has_sender_failed(direct)) return state;
  /* It has failed after all that it sent was copied. */
  return state_of_chunks(direct, start, segment, num_chunks) == EB_DIRECT_DONE ? EB_DIRECT_DONE : EB_DIRECT_FAILED;
}

/* The chunks that no one has claimed count as done, and failed. */
static void seal(eb_direct_segment *of, uint64_t start, int num_chunks) {
  uint64_t before = atomic_load_explicit(&of->claimed, memory_order_seq_cst);
  while (is_claimable(before, start, num_chunks)) {
    if (!atomic_compare_exchange_weak_explicit(&of->claimed, &before, eb_chunk_count(start, num_chunks), memory_order_seq_cst,
                                               memory_order_seq_cst))
      continue;
    atomic_fetch_or_explicit(&of->done, FAILED, memory_order_relaxed);
    atomic_fetch_add_explicit(&of->done, (uint64_t)(num_chunks - num_of(before)), memory_order_release);
    return;
  }
}

void eb_direct_refuse(eb_direct *direct) {
  if (direct->is_send || direct->has_left) return;
  atomic_store_explicit(&direct->shared->is_refused, true, memory_order_release);
}

void eb_direct_stop(eb_direct *direct, uint64_t start, int segment, int num_chunks) {
  eb_direct_segment *const of = &direct->shared->segments[segment];
  if (!direct->is_send) {
    /* A segment that becomes ready only now is not written: either its sender sees this, or it is seen here. */
    atomic_store_explicit(&direct->shared->begun, 0, memory_order_seq_cst);
  } else if (eb_chunk_start(atomic_load_explicit(&of->claimed, memory_order_relaxed)) != start) { /* it was not ready */
    atomic_store_explicit(&of->done, eb_chunk_count(start, num_chunks) | FAILED, memory_order_release);
    atomic_store_explicit(&of->claimed, eb_chunk_count(start, num_chunks), memory_order_release);
    return;
  }
  seal(of, start, num_chunks);
}

/* A segment that became ready after it was stopped is claimed by neither side. */
bool eb_direct_is_idle(const eb_direct *direct, uint64_t start, int segment) {
  const eb_direct_segment *const of = &direct->shared->segments[segment];
  const uint64_t claimed = atomic_load_explicit(&of->claimed, memory_order_acquire);
  const uint64_t done = atomic_load_explicit(&of->done, memory_order_acquire);
  return eb_chunk_start(claimed) != start || eb_chunk_start(done) != start || num_of(done) >= num_of(claimed);
}

void eb_direct_leave(eb_direct *direct) {
  if (direct->is_send || direct->has_left) return;
  direct->has_left = true;
  atomic_store_explicit(&direct->shared->header.is_left, true, memory_order_release);
}

void eb_direct_set_failed(eb_direct *direct) {
  if (direct->is_send) atomic_store_explicit(&direct->shared->has_sender_failed, true, memory_order_release);
}
