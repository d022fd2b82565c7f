/* Orders of Pready, restarts, unequal partition counts, empty transfers, and when a request may complete. */
#include <stdlib.h>

#include "case.h"

static struct shape bytes(int num_partitions, MPI_Count count) { return (struct shape){num_partitions, count, MPI_BYTE}; }

static void every_shape(const struct context *context, enum order order) {
  static const int partitions[] = {1, 2, 3, 7, 32, 128};
  static const int sizes[] = {1, 8, 1000, 65536};
  for (size_t p = 0; p < sizeof partitions / sizeof *partitions; p++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      if (partitions[p] * sizes[s] > 1 << 20) continue;
      const struct shape shape = bytes(partitions[p], sizes[s]);
      ring_run(&(struct ring){
          .comm = context->world, .sends = shape, .receives = shape, .tag = 7, .iterations = 3, .order = order});
    }
}

static void in_order(const struct context *context) { every_shape(context, FORWARD); }
static void in_reverse(const struct context *context) { every_shape(context, REVERSE); }
static void out_of_order(const struct context *context) { every_shape(context, RANDOM); }
static void by_range(const struct context *context) { every_shape(context, RANGE); }
static void by_two_ranges(const struct context *context) { every_shape(context, RANGES); }
static void by_list(const struct context *context) { every_shape(context, LIST); }

static void restarts(const struct context *context) {
  for (int size = 16; size <= 1 << 16; size <<= 6)
    ring_run(&(struct ring){.comm = context->world,
                            .sends = bytes(12, size),
                            .receives = bytes(12, size),
                            .tag = 1,
                            .iterations = 50,
                            .order = RANDOM});
}

static void unequal_counts(const struct context *context) {
  static const int partitions[] = {1, 3, 5, 7, 128};
  for (int s = 0; s < 5; s++)
    for (int r = 0; r < 5; r++)
      for (int elements = 1; elements <= 300; elements *= 300) {
        const int total = partitions[s] * partitions[r] * elements;
        ring_run(&(struct ring){.comm = context->world,
                                .sends = bytes(partitions[s], total / partitions[s]),
                                .receives = bytes(partitions[r], total / partitions[r]),
                                .tag = 2,
                                .iterations = 4,
                                .order = RANDOM});
      }
}

/* No number of segments divides these, so that a division that drops the rest is seen. */
static void prime_counts(const struct context *context) {
  static const int primes[] = {2, 5, 11, 31, 61, 127};
  for (int p = 0; p < 6; p++)
    ring_run(&(struct ring){.comm = context->world,
                            .sends = bytes(primes[p], 8191),
                            .receives = bytes(1, 8191 * (MPI_Count)primes[p]),
                            .tag = 3,
                            .iterations = 4,
                            .order = RANDOM});
}

static void many_partitions(const struct context *context) {
  ring_run(&(struct ring){
      .comm = context->world, .sends = bytes(10000, 3), .receives = bytes(10000, 3), .tag = 3, .iterations = 2, .order = RANDOM});
}

static void several_megabytes(const struct context *context) {
  ring_run(&(struct ring){.comm = context->world,
                          .sends = bytes(4, 1 << 20),
                          .receives = bytes(16, 1 << 18),
                          .tag = 3,
                          .iterations = 10,
                          .order = RANDOM});
}

static void empty(const struct context *context) {
  ring_run(&(struct ring){
      .comm = context->world, .sends = bytes(4, 0), .receives = bytes(4, 0), .tag = 4, .iterations = 5, .order = RANDOM});
  ring_run(&(struct ring){
      .comm = context->world, .sends = bytes(3, 0), .receives = bytes(8, 0), .tag = 4, .iterations = 5, .order = LIST});
  /* MPI 4.1, 4.2.1: count may be zero; then the buffer may be anything. */
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  MPI_Request both[2];
  MPI(MPI_Psend_init(NULL, 2, 0, MPI_INT, next, 4, context->world, MPI_INFO_NULL, &both[0]));
  MPI(MPI_Precv_init(NULL, 2, 0, MPI_INT, before, 4, context->world, MPI_INFO_NULL, &both[1]));
  MPI_Status statuses[2];
  for (int i = 0; i < 3; i++) {
    MPI(MPI_Startall(2, both));
    pready_all(both[0], 2, FORWARD, 0);
    MPI(MPI_Waitall(2, both, statuses));
    int count = -1;
    MPI(MPI_Get_count(&statuses[1], MPI_INT, &count));
    EXPECT(count == 0 && statuses[1].MPI_SOURCE == before && statuses[1].MPI_TAG == 4, "status has count %d, source %d, tag %d",
           count, statuses[1].MPI_SOURCE, statuses[1].MPI_TAG);
  }
  MPI(MPI_Request_free(&both[0]));
  MPI(MPI_Request_free(&both[1]));
}

static void to_nobody(const struct context *context) {
  char data[12] = "unchanged";
  MPI_Request both[2];
  MPI(MPI_Psend_init(NULL, 3, 4, MPI_CHAR, MPI_PROC_NULL, 5, context->world, MPI_INFO_NULL, &both[0]));
  MPI(MPI_Precv_init(data, 3, 4, MPI_CHAR, MPI_PROC_NULL, 5, context->world, MPI_INFO_NULL, &both[1]));
  for (int i = 0; i < 3; i++) {
    MPI_Status status;
    int count = -1, flag = 0;
    MPI(MPI_Startall(2, both));
    MPI(MPI_Parrived(both[1], 2, &flag));
    EXPECT(flag, "a partition from MPI_PROC_NULL has not arrived");
    MPI(MPI_Wait(&both[1], &status));
    MPI(MPI_Get_count(&status, MPI_CHAR, &count));
    EXPECT(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && count == 0,
           "status has source %d, tag %d, count %d", status.MPI_SOURCE, status.MPI_TAG, count);
    pready_all(both[0], 3, REVERSE, 0);
    MPI(MPI_Wait(&both[0], &status));
  }
  EXPECT(data[0] == 'u', "receiving from MPI_PROC_NULL wrote data");
  MPI(MPI_Request_free(&both[0]));
  MPI(MPI_Request_free(&both[1]));
}

static void to_oneself(const struct context *context) {
  for (int size = 1; size <= 1 << 18; size <<= 9) {
    ring_run(&(struct ring){.comm = MPI_COMM_SELF,
                            .sends = bytes(6, 2 * (MPI_Count)size),
                            .receives = bytes(4, 3 * (MPI_Count)size),
                            .tag = 6,
                            .iterations = 10,
                            .order = RANDOM});
    struct side sends, receives;
    side_recv_init(&receives, bytes(4, size), context->rank, 6, context->world);
    side_send_init(&sends, bytes(4, size), context->rank, 6, context->world);
    for (uint64_t i = 0; i < 5; i++) {
      side_prepare(&sends, i, 1);
      side_prepare(&receives, i, 1);
      MPI(MPI_Start(&receives.request));
      MPI(MPI_Start(&sends.request));
      pready_all(sends.request, 4, RANDOM, i);
      MPI(MPI_Wait(&receives.request, MPI_STATUS_IGNORE));
      MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
      side_check(&receives, i, 1);
    }
    side_destroy(&sends);
    side_destroy(&receives);
  }
}

/* Inner requests that were not started yet test as complete; the outer one must not. */
static void send_waits_for_pready(const struct context *context) {
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  for (int partitions = 1; partitions <= 16; partitions *= 4) {
    struct side sends, receives;
    side_send_init(&sends, bytes(partitions, 512), next, 8, context->world);
    side_recv_init(&receives, bytes(partitions, 512), before, 8, context->world);
    for (uint64_t i = 0; i < 4; i++) {
      side_prepare(&sends, i, (uint64_t)context->rank);
      side_prepare(&receives, i, (uint64_t)before);
      MPI(MPI_Start(&receives.request));
      MPI(MPI_Start(&sends.request));
      for (int k = 0; k < partitions; k++) {
        int test = 0, testall = 0, status = 0;
        MPI(MPI_Test(&sends.request, &test, MPI_STATUS_IGNORE));
        MPI(MPI_Testall(1, &sends.request, &testall, MPI_STATUSES_IGNORE));
        MPI(MPI_Request_get_status(sends.request, &status, MPI_STATUS_IGNORE));
        EXPECT(!test && !testall && !status, "complete with %d of %d partitions ready (%d %d %d)", k, partitions, test, testall,
               status);
        MPI(MPI_Pready(k, sends.request));
      }
      MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
      MPI(MPI_Wait(&receives.request, MPI_STATUS_IGNORE));
      side_check(&receives, i, (uint64_t)before);
    }
    side_destroy(&sends);
    side_destroy(&receives);
  }
}

static void receive_waits_for_the_last_partition(const struct context *context) {
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  for (int size = 4; size <= 4 << 16; size <<= 8) {
    struct side sends, receives;
    side_send_init(&sends, bytes(8, size), next, 9, context->world);
    side_recv_init(&receives, bytes(8, size), before, 9, context->world);
    for (uint64_t i = 0; i < 4; i++) {
      side_prepare(&sends, i, (uint64_t)context->rank);
      side_prepare(&receives, i, (uint64_t)before);
      MPI(MPI_Start(&sends.request));
      MPI(MPI_Start(&receives.request));
      for (int k = 0; k < 7; k++) MPI(MPI_Pready((k + (int)i) % 8, sends.request));
      MPI(MPI_Barrier(context->world)); /* no sender's last partition is ready */
      const int last = (7 + (int)i) % 8;
      for (int n = 0; n < 50; n++) {
        int arrived = 0, test = 0, status = 0;
        MPI(MPI_Parrived(receives.request, last, &arrived));
        MPI(MPI_Request_get_status(receives.request, &status, MPI_STATUS_IGNORE));
        MPI(MPI_Test(&receives.request, &test, MPI_STATUS_IGNORE));
        EXPECT(!arrived && !test && !status, "complete before the last partition (%d %d %d)", arrived, test, status);
      }
      MPI(MPI_Barrier(context->world));
      MPI(MPI_Pready(last, sends.request));
      MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
      MPI(MPI_Wait(&receives.request, MPI_STATUS_IGNORE));
      side_check(&receives, i, (uint64_t)before);
    }
    side_destroy(&sends);
    side_destroy(&receives);
  }
}

/* All ranks send to all ranks, themselves included, with one tag. */
static void all_to_all(const struct context *context) {
  const int n = context->num_ranks;
  struct side *sides = calloc((size_t)n * 2, sizeof *sides);
  MPI_Request *requests = malloc(sizeof *requests * 2 * (size_t)n);
  for (int r = 0; r < n; r++) {
    side_send_init(&sides[r], bytes(5, 300), r, 10, context->world);
    side_recv_init(&sides[n + r], bytes(3, 500), n - 1 - r, 10, context->world);
  }
  for (uint64_t i = 0; i < 12; i++) {
    for (int r = 0; r < n; r++) {
      side_prepare(&sides[r], i, (uint64_t)(context->rank * n + r));
      side_prepare(&sides[n + r], i, 0);
    }
    for (int r = 0; r < 2 * n; r++) requests[r] = sides[r].request;
    MPI(MPI_Startall(2 * n, requests));
    for (int r = 0; r < n; r++) pready_all(requests[r], 5, (enum order)(i % NUM_ORDERS), i);
    MPI(MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE));
    for (int r = 0; r < n; r++) side_check(&sides[n + r], i, (uint64_t)((n - 1 - r) * n + context->rank));
  }
  for (int r = 0; r < 2 * n; r++) side_destroy(&sides[r]);
  free(sides);
  free(requests);
}

const struct test_case order_cases[] = {
    {"pready_in_order_delivers_every_partition", in_order, 0},
    {"pready_in_reverse_delivers_every_partition", in_reverse, 0},
    {"pready_out_of_order_delivers_every_partition", out_of_order, 0},
    {"pready_range_delivers_every_partition", by_range, 0},
    {"pready_of_two_ranges_delivers_every_partition", by_two_ranges, 0},
    {"pready_list_delivers_every_partition", by_list, 0},
    {"fifty_restarts_deliver_fresh_data", restarts, 0},
    {"unequal_partition_counts_deliver_every_byte", unequal_counts, 0},
    {"partition_counts_that_nothing_divides_deliver_every_byte", prime_counts, 0},
    {"ten_thousand_partitions_deliver_every_byte", many_partitions, 0},
    {"several_megabytes_deliver_every_byte", several_megabytes, 0},
    {"count_zero_completes_with_an_empty_status", empty, 0},
    {"proc_null_completes_at_once_on_both_sides", to_nobody, 0},
    {"sends_to_oneself_deliver", to_oneself, 0},
    {"a_send_completes_only_after_its_last_pready", send_waits_for_pready, 0},
    {"a_receive_completes_only_after_the_last_partition", receive_waits_for_the_last_partition, 0},
    {"all_to_all_with_one_tag_delivers", all_to_all, 0},
    {0},
};
