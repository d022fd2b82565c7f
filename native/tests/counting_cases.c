/* Counts what the library hands to the MPI: 32 partitions become as many messages as were asked for.

The library calls PMPI_* only, and its references are resolved in the program first: so this program's own
functions of these names count, and hand on to the MPI's. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

static atomic_int num_messages, num_packed;

void note_packed(void) { num_packed++; }

#define FORWARD_TO(name, ...) ((__typeof__(&name))next_symbol(#name))(__VA_ARGS__)
#define EXPORTED __attribute__((visibility("default")))

static void *next_symbol(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (!found) abort();
  return found;
}

EXPORTED int PMPI_Isend(const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm, MPI_Request *request) {
  num_messages++;
  note_message(data, count, comm, true);
  if (count > 0) note_sending();
  open_device();
  const int code = FORWARD_TO(PMPI_Isend, data, count, type, target, tag, comm, request);
  close_device();
  return code;
}

EXPORTED int PMPI_Send_init(const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
                            MPI_Request *request) {
  note_message(data, count, comm, true);
  return FORWARD_TO(PMPI_Send_init, data, count, type, target, tag, comm, request);
}

EXPORTED int PMPI_Send(const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm) {
  num_messages++;
  return FORWARD_TO(PMPI_Send, data, count, type, target, tag, comm);
}

EXPORTED int PMPI_Start(MPI_Request *request) {
  num_messages++;
  note_sending();
  open_device();
  const int code = FORWARD_TO(PMPI_Start, request);
  close_device();
  return code;
}

EXPORTED int PMPI_Startall(int count, MPI_Request *requests) {
  num_messages += count;
  open_device();
  const int code = FORWARD_TO(PMPI_Startall, count, requests);
  close_device();
  return code;
}

#if MPI_AT_LEAST(4, 0)
EXPORTED int PMPI_Isend_c(const void *data, MPI_Count count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
                          MPI_Request *request) {
  num_messages++;
  return FORWARD_TO(PMPI_Isend_c, data, count, type, target, tag, comm, request);
}
#endif

/* What 32 partitions of 4 KiB become, by the environment; 0 where it is not said. */
static int promised(void) {
  const char *segments = getenv("EARLYBIRD_SEGMENTS");
  const long bound = environment_number("EARLYBIRD_AGGR_SIZE", 0);
  if (bound) return (int)(32 / (bound / 4096 < 1 ? 1 : bound / 4096 > 32 ? 32 : bound / 4096));
  if (segments && strcmp(segments, "partition") == 0) return 32;
  return (int)environment_number("EARLYBIRD_SEGMENTS", 0);
}

static void count(const struct context *context, int num_received, int tag, MPI_Info info, int expected) {
  MPI_Comm pair;
  int num_ranks = 0;
  MPI(MPI_Comm_split(context->world, context->rank / 2, 0, &pair));
  MPI(MPI_Comm_size(pair, &num_ranks));
  if (num_ranks == 2) {
    const bool sends = context->rank % 2 == 0;
    const int num_partitions = sends ? 32 : num_received, num_bytes = 32 * 4096 / num_partitions;
    const struct shape shape = {num_partitions, num_bytes, MPI_BYTE};
    struct side transfer;
    side_create(&transfer, shape, sends);
    if (sends) MPI(MPI_Psend_init(transfer.buffer, 32, 4096, MPI_BYTE, 1, tag, pair, info, &transfer.request));
    else MPI(MPI_Precv_init(transfer.buffer, num_partitions, num_bytes, MPI_BYTE, 0, tag, pair, info, &transfer.request));
    for (uint64_t i = 0; i < 12; i++) {
      side_prepare(&transfer, i, 1);
      num_messages = 0;
      MPI(MPI_Start(&transfer.request));
      /* The messages of the transfer alone: the library may send others in MPI_Start. */
      if (sends) num_messages = 0;
      if (sends) pready_all(transfer.request, 32, RANDOM, i);
      MPI(MPI_Wait(&transfer.request, MPI_STATUS_IGNORE));
      if (!sends) side_check(&transfer, i, 1);
      /* The first iterations wait for the receiver's part of the setup, or for the first plan. */
      if (sends && i >= 4 && expected)
        EXPECT(num_messages == expected, "32 partitions became %d messages instead of %d in iteration %d", num_messages, expected,
               (int)i);
      /* None where they travel in shared memory. */
      if (sends && !expected) EXPECT(num_messages <= 32, "32 partitions became %d messages", num_messages);
      MPI(MPI_Barrier(pair));
    }
    side_destroy(&transfer);
  }
  MPI(MPI_Comm_free(&pair));
}

static void by_environment(const struct context *context) {
  count(context, 32, 3, MPI_INFO_NULL, promised());
  count(context, 32, 30000, MPI_INFO_NULL, promised());
}

/* Not their greatest common divisor: a message may hold a part of one of the receiver's partitions. */
static void by_the_sender(const struct context *context) {
  for (int num_received = 1; num_received <= 128; num_received *= 4) count(context, num_received, 3, MPI_INFO_NULL, promised());
}

static void by_info(const struct context *context) {
  static const struct {
    const char *key, *value;
    int messages;
  } hints[] = {{"earlybird_segments", "4", 4},       {"earlybird_segments", "partition", 32}, {"earlybird_segments", "1", 1},
               {"earlybird_aggr_size", "16384", 8},  {"earlybird_aggr_size", "20000", 8},     {"earlybird_aggr_size", "100", 32},
               {"earlybird_aggr_size", "1000000", 1}};
  /* A small tag space holds fewer segments than partitions. */
  if (promised() || environment_number("EARLYBIRD_TAG_BITS", 31) < 19) {
    case_skip("the environment of this launch fixes the segments");
    return;
  }
  for (size_t h = 0; h < sizeof hints / sizeof *hints; h++)
    for (int tag = 4; tag <= 40000; tag *= 10000) {
      MPI_Info info;
      MPI(MPI_Info_create(&info));
      MPI(MPI_Info_set(info, hints[h].key, hints[h].value));
      count(context, 32, tag, info, hints[h].messages);
      MPI(MPI_Info_free(&info));
    }
}

/* Without partitioned requests the library hands calls on one to one. */
static void nothing_extra(const struct context *context) {
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  int sent = 1, received = 0;
  MPI_Request requests[2];
  num_messages = 0;
  MPI(MPI_Irecv(&received, 1, MPI_INT, before, 1, context->world, &requests[0]));
  MPI(MPI_Isend(&sent, 1, MPI_INT, next, 1, context->world, &requests[1]));
  MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  MPI(MPI_Barrier(context->world));
  EXPECT(num_messages <= 1, "one message became %d", num_messages);
}

static void *wait_for_all(void *request) {
  MPI(MPI_Wait(request, MPI_STATUS_IGNORE));
  return NULL;
}

/* The sender makes the other partitions ready when the receiver has seen the first, next to a thread that waits for all:
 * in the third start, from which on every mode cuts the transfer as the info asks. */
static void asked_beside_a_wait(const struct context *context) {
  enum { PARTITIONS = 4, INTS = 1 << 16, TAG = 6 };
  const int next = (context->rank + 1) % context->num_ranks;
  const int previous = (context->rank + context->num_ranks - 1) % context->num_ranks;
  if (context->level < MPI_THREAD_MULTIPLE) {
    case_skip("the thread level of this launch is too low");
    return;
  }
  for (int is_gapped = 0; is_gapped < 2; is_gapped++) {
    int *sent = calloc(2 * PARTITIONS, INTS * sizeof *sent), *received = calloc(2 * PARTITIONS, INTS * sizeof *received);
    MPI_Datatype type;
    MPI_Info info;
    MPI_Request sends, receives, waited;
    MPI(MPI_Info_create(&info));
    MPI(MPI_Info_set(info, "earlybird_segments", "partition"));
    MPI(MPI_Type_create_resized(MPI_INT, 0, (is_gapped ? 2 : 1) * (MPI_Aint)sizeof(int), &type));
    MPI(MPI_Type_commit(&type));
    for (int at = 0; at < 2 * PARTITIONS * INTS; at++) sent[at] = at + 1;
    MPI(MPI_Psend_init(sent, PARTITIONS, INTS, type, next, TAG, context->world, info, &sends));
    MPI(MPI_Precv_init(received, PARTITIONS, INTS, type, previous, TAG, context->world, MPI_INFO_NULL, &receives));
    MPI(MPI_Info_free(&info));
    for (int start = 0; start < 2; start++) {
      MPI(MPI_Start(&receives));
      MPI(MPI_Start(&sends));
      MPI(MPI_Pready_range(0, PARTITIONS - 1, sends));
      MPI(MPI_Wait(&receives, MPI_STATUS_IGNORE));
      MPI(MPI_Wait(&sends, MPI_STATUS_IGNORE));
    }
    memset(received, 0, 2 * PARTITIONS * INTS * sizeof *received);
    MPI(MPI_Start(&receives));
    MPI(MPI_Start(&sends));
    MPI(MPI_Pready(0, sends));
    pthread_t waiter;
    waited = receives;
    EXPECT(pthread_create(&waiter, NULL, wait_for_all, &waited) == 0, "cannot create a thread");
    for (int has_arrived = 0; !has_arrived;) MPI(MPI_Parrived(receives, 0, &has_arrived));
    const int last = (INTS - 1) * (is_gapped ? 2 : 1);
    EXPECT(received[last] == last + 1, "MPI_Parrived is true before the partition has arrived");
    MPI(MPI_Send(NULL, 0, MPI_INT, previous, TAG, context->world));
    MPI(MPI_Recv(NULL, 0, MPI_INT, next, TAG, context->world, MPI_STATUS_IGNORE));
    MPI(MPI_Pready_range(1, PARTITIONS - 1, sends));
    pthread_join(waiter, NULL);
    MPI(MPI_Wait(&sends, MPI_STATUS_IGNORE));
    MPI(MPI_Request_free(&sends));
    MPI(MPI_Request_free(&receives));
    MPI(MPI_Type_free(&type));
    free(sent);
    free(received);
  }
}

/* MPICH 5.0.2 takes 400 us for a message of 8 KiB with gaps within a node, and only of this size. One partition that is one
 * message, so that nothing else is packed. */
static void packed_size(const struct context *context) {
  enum { NUM_STARTS = 60 };
  static const struct {
    int num_ints;
    bool is_packed;
  } sizes[] = {{1920, false}, {2048, true}, {2176, false}, {1 << 14, true}};
  const int next = (context->rank + 1) % context->num_ranks;
  const int previous = (context->rank + context->num_ranks - 1) % context->num_ranks;
  MPI_Datatype type;
  MPI_Info info;
  MPI(MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &type));
  MPI(MPI_Type_commit(&type));
  MPI(MPI_Info_create(&info));
  MPI(MPI_Info_set(info, "earlybird_segments", "1"));
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const int num = sizes[s].num_ints;
    int *sent = calloc(2, (size_t)num * sizeof *sent), *received = calloc(2, (size_t)num * sizeof *received);
    MPI_Request requests[2];
    MPI(MPI_Precv_init(received, 1, num, type, previous, 8, context->world, MPI_INFO_NULL, &requests[0]));
    MPI(MPI_Psend_init(sent, 1, num, type, next, 8, context->world, info, &requests[1]));
    for (int i = 0; i < NUM_STARTS; i++) {
      for (int at = 0; at < num; at++) sent[2 * at] = at + i;
      MPI(MPI_Startall(2, requests));
      num_packed = 0;
      MPI(MPI_Pready(0, requests[1]));
      const bool is_packed = num_packed > 0;
      MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
      EXPECT(received[2 * num - 2] == num - 1 + i, "the last of %d ints is %d", num, received[2 * num - 2]);
      /* The first starts may be sent from copies, which are packed: on a busy machine until the receiver has had its turn. */
      if (i >= NUM_STARTS / 2)
        EXPECT(is_packed == sizes[s].is_packed, "%d ints with gaps were %spacked", num, is_packed ? "" : "not ");
    }
    MPI(MPI_Request_free(&requests[0]));
    MPI(MPI_Request_free(&requests[1]));
    free(sent);
    free(received);
  }
  MPI(MPI_Info_free(&info));
  MPI(MPI_Type_free(&type));
}

const struct test_case counting_cases[] = {
    {"eight_KiB_with_gaps_are_packed_by_the_library", packed_size, 0},
    {"thirty_two_partitions_become_the_messages_asked_for", by_environment, 0},
    {"messages_follow_the_senders_partitions_if_the_receiver_has_others", by_the_sender, 0},
    {"an_info_key_fixes_the_number_of_messages", by_info, 0},
    {"ordinary_messages_cause_no_others", nothing_extra, 0},
    {"a_partition_may_be_waited_for_beside_a_wait_for_all", asked_beside_a_wait, 0},
    {0},
};
