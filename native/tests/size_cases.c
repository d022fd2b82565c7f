/* Transfers of 2^31 bytes and more; run by name only, because they need gigabytes of memory. */
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
    if (sends)
      side_send_init(&transfer, shape, 1, 71, pair);
    else
      side_recv_init(&transfer, shape, 0, 71, pair);
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

const struct test_case size_cases[] = {
    {"more_than_2_to_the_31_bytes_in_one_partition_deliver", one_partition, 100},
    {"more_than_2_to_the_31_bytes_in_four_partitions_deliver", four_partitions, 100},
    {0},
};
