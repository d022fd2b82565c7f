/* Counting of collective calls. */
#ifndef EB_RECORDED_COLLECTIVE_H
#define EB_RECORDED_COLLECTIVE_H

#include "recorder/calls/quick.h"
#include "recorder/recording/persistent.h"
#include "recorder/recording/recorder.h"

/* An array of counts, of int or of MPI_Count; NULL where the call ignores it. */
typedef struct {
  const void *at;
  bool is_large;
} eb_counts;
#define EB_COUNTS(counts) ((eb_counts){(counts), sizeof *(counts) == 8})

static inline int64_t eb_count_at(eb_counts counts, int index) {
  return counts.is_large ? ((const int64_t *)counts.at)[index] : ((const int32_t *)counts.at)[index];
}

static inline uint64_t eb_sum(const eb_span *span, eb_counts counts, int num, MPI_Datatype type) {
  int64_t sum = 0;
  for (int c = 0; c < num; c++) sum += eb_count_at(counts, c);
  return eb_bytes(span, sum, type);
}

/* A collective of which this rank passes in so many bytes. A persistent one is only described: its starts are counted. */
static inline void eb_add_collective(const eb_span *span, unsigned call, const eb_communicator *communicator, int peer,
                                     uint64_t bytes) {
  eb_persistent *persistent = span->thread->persistent;
  if (persistent) {
    eb_persistent_add(persistent, EB_ROLE_STARTED, communicator, peer, bytes);
    return;
  }
  eb_span_entered(span, call, communicator, peer, EB_BYTES_UNKNOWN);
  eb_add_call(span, call, communicator, peer, bytes);
}

/* The message of a collective to or from one peer: none without bytes. */
static inline void eb_add_block(const eb_span *span, unsigned call, eb_role role, const eb_communicator *communicator, int peer,
                                uint64_t bytes) {
  eb_persistent *persistent = span->thread->persistent;
  if (bytes == 0) return;
  if (persistent) eb_persistent_add(persistent, role, communicator, peer, bytes);
  else eb_add_message(span, call, role, communicator, peer, EB_TAG_NONE, bytes);
}

/* Is this rank the root? In an inter-communicator the root passes MPI_ROOT. */
static inline bool eb_is_root(const eb_communicator *communicator, int root) {
  return root == MPI_ROOT || (communicator && !communicator->is_inter && root == communicator->rank);
}

/* The root as a world rank. */
static inline int eb_root(const eb_communicator *communicator, int root) {
  if (!communicator) return EB_PEER_OUTSIDE;
  return root == MPI_ROOT ? eb_members_world_rank(&communicator->local, communicator->rank) : eb_world_rank(communicator, root);
}

/* The persistent form of a collective: what COUNTED says of a call is counted at every start. */
#ifdef EB_HAS_PERSISTENT_COLLECTIVES
#define EB_PERSISTENT(name, PARAMETERS, ARGUMENTS, COUNTED)                     \
  EB_WRAP(name, PARAMETERS, ARGUMENTS, {                                        \
    eb_persistent_begin(&span);                                                 \
    COUNTED;                                                                    \
    eb_persistent_end(&span, call, eb_span_communicator(&span, comm), request); \
  })
#else
#define EB_PERSISTENT(name, PARAMETERS, ARGUMENTS, COUNTED)
#endif

/* COUNTED of a non-blocking one. */
#define EB_OPENED_COLLECTIVE(COUNTED)                                                                                        \
  EB_OPENED(COUNTED);                                                                                                        \
  if (rc == MPI_SUCCESS)                                                                                                     \
  eb_span_posts(&span, *request, EB_AWAITED_COLLECTIVE, call, eb_span_communicator(&span, comm), span.thread->awaited->root, \
                EB_TAG_NONE, span.thread->open->bytes, 0)

/* Wrappers of the six forms of a collective: blocking, non-blocking and persistent, with counts of int and of MPI_Count.
 * PARAMETERS takes the type of counts and that of displacements; ENTERS says what must be equal on all ranks. */
#define EB_SIZED(root, count, type) (root, count, type)
#define EB_UNSIZED(root) (root, 0, MPI_DATATYPE_NULL)
#define EB_SPAN_ENTERS(root, count, type) \
  EB_ENTERS(root, (type) == MPI_DATATYPE_NULL ? EB_BYTES_UNKNOWN : eb_known_bytes(&span, count, type))
#define EB_COLLECTIVE_QUICKLY(name, ARGUMENTS, ENTERS)                                          \
  eb_thread *const quick = eb_quick_collective(caller, &name##_call, comm, EB_UNPACKED ENTERS); \
  if (quick) {                                                                                  \
    const int rc = EB_NEXT(name) ARGUMENTS;                                                     \
    eb_quick_leave(quick, 0);                                                                   \
    return rc;                                                                                  \
  }
#define EB_BLOCKING_COLLECTIVE(name, PARAMETERS, ARGUMENTS, ENTERS, COUNTED)                                               \
  EB_WRAP_QUICK(EB_CALL_ALONE, name, EB_NEXT(name), PARAMETERS, ARGUMENTS, EB_COLLECTIVE_QUICKLY(name, ARGUMENTS, ENTERS), \
                EB_SPAN_ENTERS ENTERS, COUNTED)
#define EB_COLLECTIVE(name, i_name, PARAMETERS, ARGUMENTS, ENTERS, COUNTED)                                                  \
  EB_BLOCKING_COLLECTIVE(MPI_##name, (PARAMETERS(int, int)), (ARGUMENTS), ENTERS, COUNTED)                                   \
  EB_WRAP_ABOUT(EB_CALL_OPEN, MPI_##i_name, (PARAMETERS(int, int), MPI_Request * request), (ARGUMENTS, request),             \
                EB_SPAN_ENTERS ENTERS, EB_OPENED_COLLECTIVE(COUNTED))                                                        \
  EB_LARGE(EB_BLOCKING_COLLECTIVE(MPI_##name##_c, (PARAMETERS(MPI_Count, MPI_Aint)), (ARGUMENTS), ENTERS, COUNTED))          \
  EB_PERSISTENT(MPI_##name##_init, (PARAMETERS(int, int), MPI_Info info, MPI_Request * request), (ARGUMENTS, info, request), \
                COUNTED)                                                                                                     \
  EB_LARGE(EB_WRAP_ABOUT(EB_CALL_OPEN, MPI_##i_name##_c, (PARAMETERS(MPI_Count, MPI_Aint), MPI_Request * request),           \
                         (ARGUMENTS, request), EB_SPAN_ENTERS ENTERS, EB_OPENED_COLLECTIVE(COUNTED)))                        \
  EB_LARGE(EB_PERSISTENT(MPI_##name##_init_c, (PARAMETERS(MPI_Count, MPI_Aint), MPI_Info info, MPI_Request * request),       \
                         (ARGUMENTS, info, request), COUNTED))

#endif
