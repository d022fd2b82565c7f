/* Progress: a rank that has started its receive and blocks in another MPI call must still be able to receive. */
#include <stdlib.h>

#include "case.h"

enum { SENDER, RECEIVER };

/* What both ranks of a pair do between starting and completing: the sender after its wait, the receiver before. */
typedef void meet_fn(MPI_Comm pair, int side, MPI_Win window);

static void by_message(MPI_Comm pair, int side, MPI_Win window) {
  int word = 5;
  (void)window;
  if (side == SENDER) MPI(MPI_Send(&word, 1, MPI_INT, RECEIVER, 1, pair));
  else MPI(MPI_Recv(&word, 1, MPI_INT, SENDER, 1, pair, MPI_STATUS_IGNORE));
}

static void by_probe(MPI_Comm pair, int side, MPI_Win window) {
  if (side == RECEIVER) MPI(MPI_Probe(SENDER, 1, pair, MPI_STATUS_IGNORE));
  by_message(pair, side, window);
}

static void by_matched_probe(MPI_Comm pair, int side, MPI_Win window) {
  MPI_Message message;
  int word = 5;
  if (side == SENDER) {
    by_message(pair, side, window);
  } else {
    MPI(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, pair, &message, MPI_STATUS_IGNORE));
    MPI(MPI_Mrecv(&word, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
  }
}

static void by_synchronous_send(MPI_Comm pair, int side, MPI_Win window) {
  int word = 5;
  (void)window;
  if (side == SENDER) MPI(MPI_Recv(&word, 1, MPI_INT, RECEIVER, 1, pair, MPI_STATUS_IGNORE));
  else MPI(MPI_Ssend(&word, 1, MPI_INT, SENDER, 1, pair));
}

static void by_barrier(MPI_Comm pair, int side, MPI_Win window) {
  (void)side, (void)window;
  MPI(MPI_Barrier(pair));
}

static void by_broadcast(MPI_Comm pair, int side, MPI_Win window) {
  int word = side;
  (void)window;
  MPI(MPI_Bcast(&word, 1, MPI_INT, SENDER, pair));
}

static void by_fence(MPI_Comm pair, int side, MPI_Win window) {
  (void)pair, (void)side;
  MPI(MPI_Win_fence(0, window));
}

static void by_ordinary_wait(MPI_Comm pair, int side, MPI_Win window) {
  int word = 5;
  MPI_Request request;
  (void)window;
  if (side == SENDER) MPI(MPI_Isend(&word, 1, MPI_INT, RECEIVER, 1, pair, &request));
  else MPI(MPI_Irecv(&word, 1, MPI_INT, SENDER, 1, pair, &request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void textbook(const struct context *context, meet_fn *meet) {
  static const int sizes[] = {64, 1 << 20, 16 << 20}, tags[] = {3, 30000};
  MPI_Comm pair;
  MPI_Win window = MPI_WIN_NULL;
  int word = 0, num_ranks = 0;
  MPI(MPI_Comm_split(context->world, context->rank / 2, 0, &pair));
  MPI(MPI_Comm_size(pair, &num_ranks));
  const int side = context->rank % 2;
  if (num_ranks == 2) {
    if (meet == by_fence) {
      MPI(MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, pair, &window));
      MPI(MPI_Win_fence(0, window));
    }
    for (int t = 0; t < 2; t++)
      for (int s = 0; s < 3; s++) {
        const int iterations = s == 2 ? 1 : 8; /* the plan may change on the way */
        const struct shape shape = {4, sizes[s] / 4, MPI_BYTE};
        struct side transfer;
        if (side == SENDER) side_send_init(&transfer, shape, RECEIVER, tags[t], pair);
        else side_recv_init(&transfer, shape, SENDER, tags[t], pair);
        for (uint64_t i = 0; i < (uint64_t)iterations; i++) {
          side_prepare(&transfer, i, (uint64_t)s);
          MPI(MPI_Start(&transfer.request));
          if (side == SENDER) {
            pready_all(transfer.request, 4, RANDOM, i);
            MPI(MPI_Wait(&transfer.request, MPI_STATUS_IGNORE));
            meet(pair, side, window);
          } else {
            meet(pair, side, window);
            MPI(MPI_Wait(&transfer.request, MPI_STATUS_IGNORE));
            side_check(&transfer, i, (uint64_t)s);
          }
        }
        side_destroy(&transfer);
      }
    if (window != MPI_WIN_NULL) MPI(MPI_Win_free(&window));
  }
  MPI(MPI_Comm_free(&pair));
}

static void message(const struct context *context) { textbook(context, by_message); }
static void probe(const struct context *context) { textbook(context, by_probe); }
static void matched_probe(const struct context *context) { textbook(context, by_matched_probe); }
static void synchronous_send(const struct context *context) { textbook(context, by_synchronous_send); }
static void barrier(const struct context *context) { textbook(context, by_barrier); }
static void broadcast(const struct context *context) { textbook(context, by_broadcast); }
static void fence(const struct context *context) { textbook(context, by_fence); }
static void ordinary_wait(const struct context *context) { textbook(context, by_ordinary_wait); }

/* Every rank waits for its send before its receive, of all sizes: a cycle that only MPI's own progress resolves. */
static void waits_in_a_cycle(const struct context *context) {
  static const int sizes[] = {64, 1 << 20, 8 << 20};
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  for (int tag = 4; tag <= 40000; tag *= 10000)
    for (int s = 0; s < 3; s++) {
      struct side sends, receives;
      side_send_init(&sends, (struct shape){4, sizes[s] / 4, MPI_BYTE}, next, tag, context->world);
      side_recv_init(&receives, (struct shape){4, sizes[s] / 4, MPI_BYTE}, before, tag, context->world);
      for (uint64_t i = 0; i < (s == 2 ? 2 : 4); i++) {
        side_prepare(&sends, i, 1);
        side_prepare(&receives, i, 1);
        MPI(MPI_Start(&receives.request));
        MPI(MPI_Start(&sends.request));
        pready_all(sends.request, 4, RANDOM, i);
        MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
        MPI(MPI_Wait(&receives.request, MPI_STATUS_IGNORE));
        side_check(&receives, i, 1);
      }
      side_destroy(&sends);
      side_destroy(&receives);
    }
}

/* A sender may run ahead: small transfers complete locally while the receiver is busy elsewhere. */
static void many_in_flight(const struct context *context) {
  enum { CHANNELS = 20 };
  MPI_Comm pair;
  int num_ranks = 0;
  MPI(MPI_Comm_split(context->world, context->rank / 2, 0, &pair));
  MPI(MPI_Comm_size(pair, &num_ranks));
  const int side = context->rank % 2;
  if (num_ranks == 2) {
    struct side transfers[CHANNELS];
    for (int c = 0; c < CHANNELS; c++) {
      const struct shape shape = {2, 2048, MPI_BYTE};
      const int tag = c % 2 ? 6 : 50000;
      if (side == SENDER) side_send_init(&transfers[c], shape, RECEIVER, tag, pair);
      else side_recv_init(&transfers[c], shape, SENDER, tag, pair);
    }
    for (uint64_t i = 0; i < 6; i++) {
      for (int c = 0; c < CHANNELS; c++) {
        side_prepare(&transfers[c], i, (uint64_t)c);
        MPI(MPI_Start(&transfers[c].request));
        if (side == SENDER) {
          pready_all(transfers[c].request, 2, REVERSE, i);
          MPI(MPI_Wait(&transfers[c].request, MPI_STATUS_IGNORE));
        }
      }
      MPI(MPI_Barrier(pair));
      for (int c = CHANNELS - 1; c >= 0 && side == RECEIVER; c--) {
        MPI(MPI_Wait(&transfers[c].request, MPI_STATUS_IGNORE));
        side_check(&transfers[c], i, (uint64_t)c);
      }
    }
    for (int c = 0; c < CHANNELS; c++) side_destroy(&transfers[c]);
  }
  MPI(MPI_Comm_free(&pair));
}

const struct test_case progress_cases[] = {
    {"a_receiver_blocked_in_recv_still_receives", message, 0},
    {"a_receiver_blocked_in_probe_still_receives", probe, 0},
    {"a_receiver_blocked_in_mprobe_still_receives", matched_probe, 0},
    {"a_receiver_blocked_in_ssend_still_receives", synchronous_send, 0},
    {"a_receiver_blocked_in_barrier_still_receives", barrier, 0},
    {"a_receiver_blocked_in_bcast_still_receives", broadcast, 0},
    {"a_receiver_blocked_in_win_fence_still_receives", fence, 0},
    {"a_receiver_blocked_in_wait_of_another_request_still_receives", ordinary_wait, 0},
    {"ranks_that_wait_for_their_sends_first_all_receive", waits_in_a_cycle, 0},
    {"twenty_sends_complete_while_the_receiver_is_elsewhere", many_in_flight, 0},
    {0},
};
