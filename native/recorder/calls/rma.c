/* One-sided communication. The target makes no call, so only the origin counts: what it moves to the target's memory and what it
 * moves from there. Bytes are those of the origin's buffers. */
#include "recorder/calls/wrap.h"
#include "recorder/recording/windows.h"

static void moved(const eb_span *span, unsigned call, eb_role role, int target, uint64_t bytes, MPI_Win win) {
  const eb_communicator *communicator = eb_window_communicator(span, win);
  if (span->has_failed) eb_add_call(span, call, NULL, EB_PEER_NONE, 0);
  else eb_add_call_message(span, call, role, communicator, eb_world_rank(communicator, target), EB_TAG_NONE, bytes);
}

/* Both ways: the time is counted with the call, not with either message. MPI_NO_OP only reads. */
static void exchanged(const eb_span *span, unsigned call, bool is_written, int target, uint64_t put_bytes, uint64_t got_bytes,
                      MPI_Win win) {
  const eb_communicator *communicator = eb_window_communicator(span, win);
  const int peer = span->has_failed ? EB_PEER_NONE : eb_world_rank(communicator, target);
  eb_add_call(span, call, communicator, peer, 0);
  if (span->has_failed) return;
  if (is_written) eb_add_message(span, call, EB_ROLE_PUT, communicator, peer, EB_TAG_NONE, put_bytes);
  eb_add_message(span, call, EB_ROLE_GOT, communicator, peer, EB_TAG_NONE, got_bytes);
}

/* Each call with and without a request, with counts of int and of MPI_Count. */
#define FORMS(name, PARAMETERS, ARGUMENTS, COUNTED)                 \
  EB_WRAP_PART(MPI_##name, (PARAMETERS(int)), (ARGUMENTS), COUNTED) \
  EB_LARGE(EB_WRAP_PART(MPI_##name##_c, (PARAMETERS(MPI_Count)), (ARGUMENTS), COUNTED))
#define REQUEST_FORMS(name, PARAMETERS, ARGUMENTS, COUNTED)                                                    \
  EB_WRAP_OPEN(MPI_##name, (PARAMETERS(int), MPI_Request * request), (ARGUMENTS, request), EB_OPENED(COUNTED)) \
  EB_LARGE(EB_WRAP_OPEN(MPI_##name##_c, (PARAMETERS(MPI_Count), MPI_Request * request), (ARGUMENTS, request), EB_OPENED(COUNTED)))

#define TARGET(COUNT) int target_rank, MPI_Aint target_disp, COUNT target_count, MPI_Datatype target_datatype
#define TARGET_ARGUMENTS target_rank, target_disp, target_count, target_datatype
#define ORIGIN_BYTES eb_bytes(&span, origin_count, origin_datatype)

#define PUT(COUNT) const void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, TARGET(COUNT), MPI_Win win
#define PUT_ARGUMENTS origin_addr, origin_count, origin_datatype, TARGET_ARGUMENTS, win
FORMS(Put, PUT, PUT_ARGUMENTS, moved(&span, call, EB_ROLE_PUT, target_rank, ORIGIN_BYTES, win))
REQUEST_FORMS(Rput, PUT, PUT_ARGUMENTS, moved(&span, call, EB_ROLE_PUT, target_rank, ORIGIN_BYTES, win))

#define GET(COUNT) void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, TARGET(COUNT), MPI_Win win
FORMS(Get, GET, PUT_ARGUMENTS, moved(&span, call, EB_ROLE_GOT, target_rank, ORIGIN_BYTES, win))
REQUEST_FORMS(Rget, GET, PUT_ARGUMENTS, moved(&span, call, EB_ROLE_GOT, target_rank, ORIGIN_BYTES, win))

#define ACCUMULATE(COUNT) \
  const void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, TARGET(COUNT), MPI_Op op, MPI_Win win
#define ACCUMULATE_ARGUMENTS origin_addr, origin_count, origin_datatype, TARGET_ARGUMENTS, op, win
FORMS(Accumulate, ACCUMULATE, ACCUMULATE_ARGUMENTS, moved(&span, call, EB_ROLE_PUT, target_rank, ORIGIN_BYTES, win))
REQUEST_FORMS(Raccumulate, ACCUMULATE, ACCUMULATE_ARGUMENTS, moved(&span, call, EB_ROLE_PUT, target_rank, ORIGIN_BYTES, win))

/* The origin's buffer is not significant with MPI_NO_OP. */
#define GET_ACCUMULATE(COUNT)                                                                                       \
  const void *origin_addr, COUNT origin_count, MPI_Datatype origin_datatype, void *result_addr, COUNT result_count, \
      MPI_Datatype result_datatype, TARGET(COUNT), MPI_Op op, MPI_Win win
#define GET_ACCUMULATE_ARGUMENTS \
  origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, TARGET_ARGUMENTS, op, win
#define GET_ACCUMULATED                                                                    \
  exchanged(&span, call, op != MPI_NO_OP, target_rank, op == MPI_NO_OP ? 0 : ORIGIN_BYTES, \
            eb_bytes(&span, result_count, result_datatype), win)
FORMS(Get_accumulate, GET_ACCUMULATE, GET_ACCUMULATE_ARGUMENTS, GET_ACCUMULATED)
REQUEST_FORMS(Rget_accumulate, GET_ACCUMULATE, GET_ACCUMULATE_ARGUMENTS, GET_ACCUMULATED)

/* One element each way. */
#define ELEMENT eb_bytes(&span, 1, datatype)
EB_WRAP_PART(MPI_Fetch_and_op,
             (const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Op op,
              MPI_Win win),
             (origin_addr, result_addr, datatype, target_rank, target_disp, op, win),
             exchanged(&span, call, op != MPI_NO_OP, target_rank, ELEMENT, ELEMENT, win))
EB_WRAP_PART(MPI_Compare_and_swap,
             (const void *origin_addr, const void *compare_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
              MPI_Aint target_disp, MPI_Win win),
             (origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win),
             exchanged(&span, call, true, target_rank, ELEMENT, ELEMENT, win))
