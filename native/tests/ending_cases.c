/* Requests that end otherwise than by a wait: freed or cancelled when they are complete, or as good as. */
#include <stdlib.h>
#include <string.h>

#include "case.h"

enum { TAG = 81, FAR_TAG = 30081, PARTITIONS = 4 };

static int next_of(const struct context *context) { return (context->rank + 1) % context->num_ranks; }
static int before_of(const struct context *context) { return (context->rank + context->num_ranks - 1) % context->num_ranks; }

static void wait_until_arrived(struct side *receives) {
  for (int k = 0; k < receives->shape.num_partitions; k++)
    for (int flag = 0; !flag && !case_failed();) MPI(MPI_Parrived(receives->request, k, &flag));
}

static void wait_until_complete(struct side *side) {
  for (int flag = 0; !flag && !case_failed();) MPI(MPI_Request_get_status(side->request, &flag, MPI_STATUS_IGNORE));
}

static void free_request(struct side *side) {
  MPI(MPI_Request_free(&side->request));
  EXPECT(side->request == MPI_REQUEST_NULL, "a freed request is not null");
}

/* Requests that are freed in their n-th start: at some a plan has come with the data, or a report is owed. The next ones of
 * the tag must not find anything of them. */
static void free_in_starts(const struct context *context, struct shape shape, void (*complete)(struct side *)) {
  for (int tag = TAG; tag <= FAR_TAG; tag += FAR_TAG - TAG)
    for (uint64_t last = 0; last < 8 && !case_failed(); last++) {
      struct side sends, receives;
      side_send_init(&sends, shape, next_of(context), tag, context->world);
      side_recv_init(&receives, shape, before_of(context), tag, context->world);
      for (uint64_t i = 0; i <= last; i++) {
        side_prepare(&sends, i, (uint64_t)context->rank);
        side_prepare(&receives, i, (uint64_t)before_of(context));
        MPI(MPI_Start(&receives.request));
        MPI(MPI_Start(&sends.request));
        pready_all(sends.request, shape.num_partitions, RANDOM, i);
        if (i < last) {
          MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
          MPI(MPI_Wait(&receives.request, MPI_STATUS_IGNORE));
        } else {
          complete(&receives);
          free_request(&receives);
          wait_until_complete(&sends);
          free_request(&sends);
        }
        side_check(&receives, i, (uint64_t)before_of(context));
      }
      side_destroy(&sends);
      side_destroy(&receives);
    }
}

static void freed_after_parrived(const struct context *context) {
  free_in_starts(context, (struct shape){PARTITIONS, 100, MPI_BYTE}, wait_until_arrived);
  free_in_starts(context, (struct shape){PARTITIONS, 50000, MPI_BYTE}, wait_until_arrived);
}

static void freed_after_get_status(const struct context *context) {
  MPI_Datatype gapped;
  MPI(MPI_Type_vector(3, 2, 5, MPI_INT, &gapped));
  MPI(MPI_Type_commit(&gapped));
  free_in_starts(context, (struct shape){PARTITIONS, 100, MPI_BYTE}, wait_until_complete);
  free_in_starts(context, (struct shape){PARTITIONS, 20, gapped}, wait_until_complete);
  MPI(MPI_Type_free(&gapped));
}

static void freed_before_unpacked(const struct context *context) {
  MPI_Datatype gapped;
  MPI(MPI_Type_vector(3, 2, 5, MPI_INT, &gapped));
  MPI(MPI_Type_commit(&gapped));
  struct side sends, receives;
  side_send_init(&sends, (struct shape){PARTITIONS, 20, gapped}, context->rank, TAG, context->world);
  side_recv_init(&receives, (struct shape){PARTITIONS, 20, gapped}, context->rank, TAG, context->world);
  side_prepare(&sends, 1, 1);
  side_prepare(&receives, 1, 1);
  MPI(MPI_Start(&receives.request));
  MPI(MPI_Start(&sends.request));
  pready_all(sends.request, PARTITIONS, FORWARD, 0);
  MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
  wait_until_complete(&receives);
  free_request(&receives);
  side_check(&receives, 1, 1);
  side_destroy(&sends);
  side_destroy(&receives);
}

/* Rank 0 frees its sends before rank 1 can receive them, and goes on with a message that rank 1 waits for. */
static void send_freed_when_ready(const struct context *context) {
  MPI_Datatype gapped;
  MPI(MPI_Type_vector(2, 1, 2, MPI_INT, &gapped));
  MPI(MPI_Type_commit(&gapped));
  const struct shape shapes[] = {{PARTITIONS, 10, MPI_BYTE}, {PARTITIONS, 1000000, MPI_BYTE}, {PARTITIONS, 100000, gapped}};
  enum { NUM_SHAPES = sizeof shapes / sizeof *shapes };
  for (int tag = TAG; tag <= FAR_TAG && context->rank < 2; tag += FAR_TAG - TAG)
    for (int s = 0; s < NUM_SHAPES; s++) {
      struct side side;
      int word = 0;
      if (context->rank == 0) {
        side_send_init(&side, shapes[s], 1, tag, context->world);
        side_prepare(&side, 1, 1);
        MPI(MPI_Start(&side.request));
        pready_all(side.request, PARTITIONS, REVERSE, 0);
        free_request(&side);
        MPI(MPI_Send(&word, 1, MPI_INT, 1, 5, context->world));
        MPI(MPI_Recv(&word, 1, MPI_INT, 1, 5, context->world, MPI_STATUS_IGNORE));
      } else {
        MPI(MPI_Recv(&word, 1, MPI_INT, 0, 5, context->world, MPI_STATUS_IGNORE));
        side_recv_init(&side, shapes[s], 0, tag, context->world);
        side_prepare(&side, 1, 1);
        MPI(MPI_Start(&side.request));
        MPI(MPI_Wait(&side.request, MPI_STATUS_IGNORE));
        side_check(&side, 1, 1);
        MPI(MPI_Send(&word, 1, MPI_INT, 0, 5, context->world));
      }
      side_destroy(&side);
    }
  MPI(MPI_Type_free(&gapped));
}

/* Whatever is missing, the request is as before, and its transfer can be brought to its end. */
static void free_of_incomplete(const struct context *context) {
  struct side sends, receives;
  const struct shape shape = {PARTITIONS, 30, MPI_BYTE};
  side_send_init(&sends, shape, context->rank, TAG, context->world);
  side_recv_init(&receives, shape, context->rank, TAG, context->world);
  side_prepare(&sends, 1, 1);
  side_prepare(&receives, 1, 1);
  MPI(MPI_Start(&receives.request));
  MPI(MPI_Start(&sends.request));
  MPI(MPI_Pready_range(0, PARTITIONS - 2, sends.request));
  MPI_Request copies[2] = {sends.request, receives.request};
  for (int r = 0; r < 2; r++)
    EXPECT(error_class(MPI_Request_free(&copies[r])) == MPI_ERR_REQUEST, "a request was freed before its last partition");
  MPI(MPI_Pready(PARTITIONS - 1, sends.request));
  MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
  MPI(MPI_Wait(&receives.request, MPI_STATUS_IGNORE));
  side_check(&receives, 1, 1);
  side_destroy(&sends);
  side_destroy(&receives);
}

static void cancel(const struct context *context) {
  struct side sends, receives;
  const struct shape shape = {PARTITIONS, 30, MPI_BYTE};
  side_send_init(&sends, shape, context->rank, TAG, context->world);
  side_recv_init(&receives, shape, context->rank, TAG, context->world);
  for (uint64_t i = 0; i < 3; i++) {
    MPI(MPI_Cancel(&sends.request));
    MPI(MPI_Cancel(&receives.request));
    side_prepare(&sends, i, 1);
    side_prepare(&receives, i, 1);
    MPI(MPI_Start(&receives.request));
    MPI(MPI_Start(&sends.request));
    pready_all(sends.request, PARTITIONS, FORWARD, 0);
    wait_until_complete(&receives);
    wait_until_complete(&sends);
    MPI(MPI_Cancel(&receives.request));
    MPI(MPI_Cancel(&sends.request));
    int cancelled = 1;
    MPI_Status status;
    MPI(MPI_Wait(&receives.request, &status));
    MPI(MPI_Test_cancelled(&status, &cancelled));
    EXPECT(!cancelled, "a receive that was complete is cancelled");
    MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
    side_check(&receives, i, 1);
  }
  side_destroy(&sends);
  side_destroy(&receives);
}

const struct test_case ending_cases[] = {
    {"a_receive_may_be_freed_once_all_its_partitions_have_arrived", freed_after_parrived, 0},
    {"a_request_may_be_freed_once_its_status_is_complete", freed_after_get_status, 0},
    {"a_receive_that_is_freed_complete_is_unpacked", freed_before_unpacked, 0},
    {"a_send_whose_partitions_are_ready_may_be_freed_before_it_is_received", send_freed_when_ready, 0},
    {"freeing_a_request_that_is_not_complete_is_an_error", free_of_incomplete, 0},
    {"cancelling_what_is_inactive_or_complete_does_nothing", cancel, 0},
    {0},
};
