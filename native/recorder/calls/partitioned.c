/* MPI_Psend_init, MPI_Precv_init, MPI_Pready and its variants, MPI_Parrived. A start is one message of all partitions. */
#include "recorder/calls/wrap.h"

static void created(const eb_span *span, unsigned call, int rc, eb_request_kind kind, int partitions, int64_t count,
                    MPI_Datatype type, int rank, int tag, MPI_Comm comm, const MPI_Request *request) {
  eb_communicator *communicator = eb_span_communicator(span, comm);
  const int peer = rc == MPI_SUCCESS ? eb_world_rank(communicator, rank) : EB_PEER_NONE;
  eb_add_call(span, call, communicator, peer, 0);
  if (rc != MPI_SUCCESS) return;
  const eb_request partitioned = {.kind = kind,
                                  .call = call,
                                  .communicator = communicator,
                                  .peer = peer,
                                  .tag = tag,
                                  .bytes = eb_bytes(span, partitions * count, type),
                                  .partitions = (uint32_t)partitions};
  eb_requests_add(eb_request_key(*request), &partitioned);
}

EB_WRAP(MPI_Psend_init,
        (const void *buf, int partitions, EB_PARTITIONED_COUNT count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
         MPI_Info info, MPI_Request *request),
        (buf, partitions, count, datatype, dest, tag, comm, info, request),
        created(&span, call, rc, EB_REQUEST_PARTITIONED_SEND, partitions, (int64_t)count, datatype, dest, tag, comm, request))
EB_WRAP(MPI_Precv_init,
        (void *buf, int partitions, EB_PARTITIONED_COUNT count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
         MPI_Info info, MPI_Request *request),
        (buf, partitions, count, datatype, source, tag, comm, info, request),
        created(&span, call, rc, EB_REQUEST_PARTITIONED_RECEIVE, partitions, (int64_t)count, datatype, source, tag, comm, request))
/* Partitions that are ready count before the call: the message may be sent, and complete, within it. */
#define READY(first, last) \
  if (span.thread) eb_awaited_ready(eb_request_key(request), first, last)
EB_WRAP_ABOUT(EB_CALL_PART, MPI_Pready, (int partition, MPI_Request request), (partition, request), READY(partition, partition),
              EB_ONLY_TIME)
EB_WRAP_ABOUT(EB_CALL_PART, MPI_Pready_range, (int partition_low, int partition_high, MPI_Request request),
              (partition_low, partition_high, request), READY(partition_low, partition_high), EB_ONLY_TIME)
EB_WRAP_POLL(MPI_Parrived, (MPI_Request request, int partition, int *flag), (request, partition, flag), EB_ONLY_TIME)

/* Under a name of our own, because headers differ in a const of its list. */
EB_CALL_OF(EB_CALL_PART, MPI_Pready_list);
EB_EXPORT int eb_recorded_pready_list(int length, const int *partitions, MPI_Request request) __asm__("MPI_Pready_list");
EB_EXPORT int eb_recorded_pready_list(int length, const int *partitions, MPI_Request request) {
  eb_span span = eb_span_begin(&MPI_Pready_list_call);
  if (span.thread) eb_awaited_ready_list(eb_request_key(request), length, partitions);
  const int rc = ((int (*)(int, const int *, MPI_Request))eb_call_next(&MPI_Pready_list_call))(length, partitions, request);
  if (eb_span_returned(&span, rc)) {
    eb_add_call(&span, eb_call_number(&MPI_Pready_list_call), NULL, EB_PEER_NONE, 0);
    eb_span_end(&span);
  }
  return rc;
}
