/* What sender and receiver of a transfer tell each other where the system copies from the memory of one to that of the other: once, and
 * by whichever side is there. Uses no MPI, and copies nothing itself.
 *
 * A segment is copied in chunks. Once its last partition is ready, and the receiver has begun the start, either side claims chunks one
 * after another, copies them, and counts them as done, until none is left. So both sides copy at the same time if both wait; a receiver
 * that has begun its start and is in any other call gets everything from the sender; and a sender that has sent all and is in any other
 * call has it fetched by the receiver. A sender's start is complete when all chunks are done, which is when its receiver has begun
 * the start: a standard send may wait for that.
 */
#ifndef EB_DIRECT_H
#define EB_DIRECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/node/block.h"
#include "partitioned/node/chunks.h"

enum { EB_DIRECT_PAGE = 4096, EB_DIRECT_MIN_CHUNK = 16 * 1024, EB_DIRECT_MAX_CHUNK = 128 * 1024 };
#define EB_DIRECT_CHUNKING ((eb_chunking){EB_DIRECT_PAGE, EB_DIRECT_MIN_CHUNK, EB_DIRECT_MAX_CHUNK})

/* Counts of chunks. The highest bit of that of chunks that are done says that one could not be copied. */
typedef struct {
  _Atomic uint64_t claimed, done;
} eb_direct_segment;

/* What the two sides share. */
typedef struct {
  eb_block_header header;
  _Alignas(64) _Atomic uint64_t begun; /* the start that the receiver is in, or was in; 0: nothing is to be written */
  _Atomic uint64_t receiver_memory; /* the address of the transfer's first byte */
  atomic_bool is_waiting; /* the receiver, for all of its start: the sender need not copy while it computes */
  atomic_bool is_refused; /* the receiver has failed: the sender need not wait, but the memory is still this transfer's */
  _Alignas(64) _Atomic uint64_t sender_memory;
  atomic_bool has_sender_failed; /* in this start or another one: nothing more comes */
  _Alignas(64) eb_direct_segment segments[EB_NODE_MAX_SEGMENTS];
} eb_direct_memory;

/* One side. The members belong to direct.h and direct.c. */
typedef struct {
  eb_direct_memory *shared;
  bool is_send;
  bool has_left; /* of a receiver: the memory may be another channel's by now */
} eb_direct;

/* Prepares memory for a new transfer, before the receiver knows of it. */
void eb_direct_format(void *memory);
void eb_direct_begin(eb_direct *direct, void *memory, bool is_send);

/* Of a segment: at least 16 and at most 128 KiB. */
static inline int64_t eb_direct_chunk_bytes(int64_t num_bytes) { return eb_chunk_bytes(EB_DIRECT_CHUNKING, num_bytes); }
static inline int eb_direct_num_chunks(int64_t num_bytes) { return eb_num_chunks(EB_DIRECT_CHUNKING, num_bytes); }

/* ---- A start ---- */

/* Of a receiver: its start begins, with this memory. */
void eb_direct_open(eb_direct *direct, uint64_t start, const void *memory);
void eb_direct_set_waiting(eb_direct *direct, bool is_waiting);

/* Of a sender: a segment is ready. Then either this side sees that the receiver has begun the start, or the receiver, when it has begun
 * it, sees the segment. */
void eb_direct_make_ready(eb_direct *direct, uint64_t start, int segment, const void *memory);
/* Does the receiver wait for the start, so that it copies without this side? */
bool eb_direct_is_awaited(const eb_direct *direct, uint64_t start);

/* Is there a chunk that this side could claim? */
bool eb_direct_is_claimable(const eb_direct *direct, uint64_t start, int segment, int num_chunks);
/* The chunk that this side, and no other thread of any side, now copies; -1: none. */
int eb_direct_claim(eb_direct *direct, uint64_t start, int segment, int num_chunks);
/* It has been copied, or could not be. */
void eb_direct_finish(eb_direct *direct, int segment, bool is_copied);
/* The address of the other side, of which a chunk was claimed. */
static inline uint64_t eb_direct_other_memory(const eb_direct *direct) {
  return atomic_load_explicit(direct->is_send ? &direct->shared->receiver_memory : &direct->shared->sender_memory,
                              memory_order_relaxed);
}

typedef enum { EB_DIRECT_OPEN, EB_DIRECT_DONE, EB_DIRECT_FAILED } eb_direct_state;

/* Are all chunks of a segment done? For a sender also if the receiver wants nothing more. What a sender that has failed will not send has
 * failed, whatever start it failed in. */
eb_direct_state eb_direct_state_of(const eb_direct *direct, uint64_t start, int segment, int num_chunks);

/* A receiver that has failed wants nothing more: to be called before its segments are stopped, which the sender would take for its own
 * failure. */
void eb_direct_refuse(eb_direct *direct);
/* After an error of this side: the other one claims no chunk of the segment any more, and fails if some are missing. Of all segments of
 * the start, before the caller's memory is given back; and then not before eb_direct_is_idle. */
void eb_direct_stop(eb_direct *direct, uint64_t start, int segment, int num_chunks);
/* Is no chunk being copied of a segment that was stopped? */
bool eb_direct_is_idle(const eb_direct *direct, uint64_t start, int segment);
/* The receiver will use the memory no more, which may then be used for something else once the sender is done with it, too: the last
 * that it does with it. Has an effect once. */
void eb_direct_leave(eb_direct *direct);
/* A sender that has failed: its receiver waits for no later start. After its segments are stopped and idle. */
void eb_direct_set_failed(eb_direct *direct);

#endif
