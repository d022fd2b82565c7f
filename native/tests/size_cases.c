/* Sizes at which something in the library overflows or wraps around; run by name only, because they take gigabytes of memory or a
 * setting of their own. */
#include <stdio.h>

#include "case.h"

/* 2^31 + 80 bytes of every rank of a pair, beyond what an int counts. */
static void large(const struct context *context, int senders, int receivers) {
  MPI_Comm pair;
  int num_ranks = 0;
  MPI(MPI_Comm_split(context->world, context->rank / 2, 0, &pair));
  MPI(MPI_Comm_size(pair, &num_ranks));
  if (num_ranks == 2) {
    const MPI_Count total = ((MPI_Count)1 << 31) + 80;
    const bool sends = context->rank % 2 == 0;
    const int partitions = sends ? senders : receivers;
    const struct shape shape = {partitions, total / partitions, MPI_BYTE};
    struct side transfer;
    if (sends) side_send_init(&transfer, shape, 1, 71, pair);
    else side_recv_init(&transfer, shape, 0, 71, pair);
    for (uint64_t i = 0; i < 2; i++) {
      MPI_Status status;
      if (sends) side_prepare(&transfer, i, 1);
      MPI(MPI_Start(&transfer.request));
      if (sends) pready_all(transfer.request, partitions, REVERSE, i);
      MPI(MPI_Wait(&transfer.request, &status));
      if (!sends) {
        MPI_Count elements = 0;
        side_check(&transfer, i, 1);
        MPI(MPI_Get_elements_x(&status, MPI_BYTE, &elements));
        EXPECT(elements == total, "the status counts %lld of %lld bytes", (long long)elements, (long long)total);
      }
    }
    side_destroy(&transfer);
  }
  MPI(MPI_Comm_free(&pair));
}

static void one_partition(const struct context *context) { large(context, 1, 1); }
static void four_partitions(const struct context *context) { large(context, 4, 2); }

/* With EARLYBIRD_SEGMENTS=partition: more segments than 16 bits can name. The other side has partitions of many segments, and asks
 * for them one by one. */
static void many_segments(const struct context *context) {
  enum { PARTITIONS = 66000, OF_RECEIVER = 11 };
  if (context->rank > 1) return;
  struct side transfer;
  const int peer = 1 - context->rank;
  if (context->rank == 0) side_send_init(&transfer, (struct shape){PARTITIONS, 1, MPI_BYTE}, peer, 72, context->world);
  else side_recv_init(&transfer, (struct shape){OF_RECEIVER, PARTITIONS / OF_RECEIVER, MPI_BYTE}, peer, 72, context->world);
  for (uint64_t i = 0; i < 2; i++) {
    side_prepare(&transfer, i, 1);
    MPI(MPI_Start(&transfer.request));
    if (context->rank == 0) {
      /* All but the last third of the receiver's last partition. */
      MPI(MPI_Pready_range(0, PARTITIONS - 2001, transfer.request));
      MPI(MPI_Barrier(context->world));
      MPI(MPI_Barrier(context->world));
      MPI(MPI_Pready_range(PARTITIONS - 2000, PARTITIONS - 1, transfer.request));
    } else {
      for (int p = 0; p < OF_RECEIVER - 1; p++)
        for (int arrived = 0; !arrived;) MPI(MPI_Parrived(transfer.request, p, &arrived));
      MPI(MPI_Barrier(context->world));
      int arrived;
      MPI(MPI_Parrived(transfer.request, OF_RECEIVER - 1, &arrived));
      EXPECT(!arrived, "a partition has arrived of which 2000 segments were not sent");
      MPI(MPI_Barrier(context->world));
    }
    MPI(MPI_Wait(&transfer.request, MPI_STATUS_IGNORE));
    if (context->rank == 1) side_check(&transfer, i, 1);
  }
  side_destroy(&transfer);
}

static long resident_kib(void) {
  long total = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
  if (file) fclose(file);
  return resident * 4;
}

/* As many partitions as an int counts, without data: a message of no bytes, and a bit for each partition once it is ready. */
static void all_partitions(const struct context *context) {
  enum { SLICE = 1 << 24 };
  const long before_kib = resident_kib();
  char nothing;
  int flag;
  MPI_Request request;
  if (context->rank > 1) return;
  if (context->rank == 0) MPI(MPI_Psend_init(&nothing, INT32_MAX, 0, MPI_BYTE, 1, 73, context->world, MPI_INFO_NULL, &request));
  else MPI(MPI_Precv_init(&nothing, INT32_MAX, 0, MPI_BYTE, 0, 73, context->world, MPI_INFO_NULL, &request));
  for (int i = 0; i < 2; i++) {
    MPI(MPI_Start(&request));
    if (i == 0) EXPECT(resident_kib() - before_kib < 16 << 10, "the request takes %ld KiB", resident_kib() - before_kib);
    if (context->rank == 0) {
      MPI(MPI_Pready(INT32_MAX - 1, request));
      MPI(MPI_Pready(SLICE + 3, request));
      EXPECT(error_class(MPI_Pready(SLICE + 3, request)) == MPI_ERR_ARG, "a partition can be made ready twice");
      MPI(MPI_Pready_range(0, SLICE + 2, request));
      EXPECT(error_class(MPI_Pready_range(SLICE - 1, SLICE + 1, request)) == MPI_ERR_ARG, "partitions can be made ready twice");
      /* Up to the last one before a ready one, which the error leaves in order. */
      EXPECT(error_class(MPI_Pready_range(SLICE + 4, INT32_MAX - 1, request)) == MPI_ERR_ARG,
             "the last one can be made ready twice");
    } else {
      while (MPI_Parrived(request, INT32_MAX - 1, &flag) == MPI_SUCCESS && !flag) continue;
    }
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  EXPECT(resident_kib() - before_kib < 300 << 10, "the request takes %ld KiB", resident_kib() - before_kib);
  MPI(MPI_Request_free(&request));
}

/* More partitions than have states, with data. */
static void many_partitions(const struct context *context) {
  enum { PARTITIONS = (1 << 20) + 77 };
  const struct shape each = {PARTITIONS, 1, MPI_BYTE}, whole = {1, PARTITIONS, MPI_BYTE};
  ring_run(&(struct ring){context->world, each, each, .tag = 74, .iterations = 2, .order = RANGES});
  ring_run(&(struct ring){context->world, each, whole, .tag = 75, .iterations = 2, .order = LIST});
}

/* The same of a type with gaps, which both sides pack by partition. */
static void many_partitions_with_gaps(const struct context *context) {
  enum { PARTITIONS = (1 << 20) + 77 };
  MPI_Datatype gapped;
  MPI(MPI_Type_create_resized(MPI_BYTE, 0, 2, &gapped));
  MPI(MPI_Type_commit(&gapped));
  const struct shape shape = {PARTITIONS, 1, gapped};
  ring_run(&(struct ring){context->world, shape, shape, .tag = 76, .iterations = 2, .order = RANGES});
  MPI(MPI_Type_free(&gapped));
}

const struct test_case size_cases[] = {
    {"more_than_2_to_the_31_bytes_in_one_partition_deliver", one_partition, 100},
    {"more_than_2_to_the_31_bytes_in_four_partitions_deliver", four_partitions, 100},
    {"a_request_of_2_to_the_31_empty_partitions_takes_a_bit_of_each_ready_one", all_partitions, 30},
    {"a_request_of_a_million_partitions_delivers", many_partitions, 30},
    {"a_request_of_a_million_partitions_with_gaps_delivers", many_partitions_with_gaps, 60},
    {"a_request_of_more_segments_than_16_bits_name_delivers", many_segments, 30},
    {0},
};
