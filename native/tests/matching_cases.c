/* Which send meets which receive: init order of (communicator, tag, source), whatever is started or freed when. */
#include <stdlib.h>

#include "case.h"

static int next_of(const struct context *context) { return (context->rank + 1) % context->num_ranks; }
static int before_of(const struct context *context) { return (context->rank + context->num_ranks - 1) % context->num_ranks; }

/* Channel c has data of its own, and its own start order on either side. */
static void many_channels(const struct context *context, int num_channels, int (*tag_of)(int channel)) {
  struct side *sends = calloc((size_t)num_channels, sizeof *sends);
  struct side *receives = calloc((size_t)num_channels, sizeof *receives);
  MPI_Request *requests = malloc(sizeof *requests * (size_t)num_channels * 2);
  for (int c = 0; c < num_channels; c++) {
    side_send_init(&sends[c], (struct shape){3, 8, MPI_BYTE}, next_of(context), tag_of(c), context->world);
    side_recv_init(&receives[c], (struct shape){2, 12, MPI_BYTE}, before_of(context), tag_of(c), context->world);
  }
  for (uint64_t i = 0; i < 5; i++) {
    for (int c = 0; c < num_channels; c++) {
      side_prepare(&sends[c], i, (uint64_t)c);
      side_prepare(&receives[c], i, (uint64_t)c);
    }
    for (int c = 0; c < num_channels; c++) MPI(MPI_Start(&receives[c].request));
    for (int c = num_channels - 1; c >= 0; c--) {
      MPI(MPI_Start(&sends[c].request));
      pready_all(sends[c].request, 3, RANDOM, i);
    }
    for (int c = 0; c < num_channels; c++) {
      requests[2 * c] = sends[c].request;
      requests[2 * c + 1] = receives[num_channels - 1 - c].request;
    }
    MPI(MPI_Waitall(2 * num_channels, requests, MPI_STATUSES_IGNORE));
    for (int c = 0; c < num_channels; c++) side_check(&receives[c], i, (uint64_t)c);
  }
  for (int c = 0; c < num_channels; c++) {
    side_destroy(&sends[c]);
    side_destroy(&receives[c]);
  }
  free(sends);
  free(receives);
  free(requests);
}

static int same_tag(int channel) { return 17 + 0 * channel; }
static int few_tags(int channel) { return channel % 7; }

static void ten_channels(const struct context *context) { many_channels(context, 10, same_tag); }
static void two_hundred_channels(const struct context *context) { many_channels(context, 200, same_tag); }
/* With 15 bits of tags a rank has 1023 channels beside those that both sides know without a message. */
static void more_channels_than_tags(const struct context *context) { many_channels(context, 1100, same_tag); }
static void channels_of_few_tags(const struct context *context) { many_channels(context, 150, few_tags); }

static int largest_tag(const struct context *context) {
  int *bound = NULL, flag = 0;
  MPI(MPI_Comm_get_attr(context->world, MPI_TAG_UB, &bound, &flag));
  return flag ? *bound : 32767;
}

static void every_tag(const struct context *context) {
  const int bound = largest_tag(context);
  int tags[80], n = 0;
  for (int64_t power = 1; power <= bound; power *= 2) {
    tags[n++] = (int)(power - 1);
    if (power > 2) tags[n++] = (int)power;
  }
  if (tags[n - 1] != bound - 1) tags[n++] = bound - 1;
  tags[n++] = bound;
  struct side sends[80], receives[80];
  for (int t = 0; t < n; t++) {
    side_send_init(&sends[t], (struct shape){4, 5, MPI_BYTE}, next_of(context), tags[t], context->world);
    side_recv_init(&receives[n - 1 - t], (struct shape){4, 5, MPI_BYTE}, before_of(context), tags[n - 1 - t], context->world);
  }
  for (uint64_t i = 0; i < 5; i++) {
    MPI_Status status;
    for (int t = 0; t < n; t++) {
      side_prepare(&sends[t], i, (uint64_t)tags[t]);
      side_prepare(&receives[t], i, (uint64_t)tags[t]);
      MPI(MPI_Start(&receives[t].request));
    }
    for (int t = n - 1; t >= 0; t--) {
      MPI(MPI_Start(&sends[t].request));
      pready_all(sends[t].request, 4, RANDOM, i);
    }
    for (int t = 0; t < n; t++) {
      MPI(MPI_Wait(&receives[t].request, &status));
      EXPECT(status.MPI_TAG == tags[t] && status.MPI_SOURCE == before_of(context), "status of tag %d has %d, source %d", tags[t],
             status.MPI_TAG, status.MPI_SOURCE);
      MPI(MPI_Wait(&sends[t].request, MPI_STATUS_IGNORE));
      side_check(&receives[t], i, (uint64_t)tags[t]);
    }
  }
  for (int t = 0; t < n; t++) {
    side_destroy(&sends[t]);
    side_destroy(&receives[t]);
  }
}

/* MPI 4.1, 4.2.1: matching is by the order of initialisation; a request freed early has had its turn. */
static void freed_before_the_match(const struct context *context) {
  for (int tag = 2; tag <= 20000; tag *= 10000)
    for (int first = 0; first < 2; first++) {
      struct side sends[3], receives[3];
      for (int c = 0; c < 3; c++) {
        if (first) side_recv_init(&receives[c], (struct shape){2, 9, MPI_BYTE}, before_of(context), tag, context->world);
        side_send_init(&sends[c], (struct shape){3, 6, MPI_BYTE}, next_of(context), tag, context->world);
        if (!first) side_recv_init(&receives[c], (struct shape){2, 9, MPI_BYTE}, before_of(context), tag, context->world);
        if (c == 1) { /* never started on either side */
          side_destroy(&sends[1]);
          side_destroy(&receives[1]);
        }
      }
      for (uint64_t i = 0; i < 4; i++)
        for (int c = 0; c < 3; c += 2) {
          side_prepare(&sends[c], i, (uint64_t)c);
          side_prepare(&receives[c], i, (uint64_t)c);
          MPI_Request both[2] = {receives[c].request, sends[c].request};
          MPI(MPI_Startall(2, both));
          pready_all(both[1], 3, RANDOM, i);
          MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
          side_check(&receives[c], i, (uint64_t)c);
        }
      for (int c = 0; c < 3; c += 2) {
        side_destroy(&sends[c]);
        side_destroy(&receives[c]);
      }
    }
}

/* One side frees before the other has initialised anything. */
static void freed_early_on_one_side(const struct context *context) {
  for (int tag = 2; tag <= 20000; tag *= 10000)
    for (int early = 0; early < 2; early++) { /* 0: senders are early, 1: receivers are */
      struct side freed[2], sends, receives;
      if (early == 0) side_send_init(&freed[0], (struct shape){1, 64, MPI_BYTE}, next_of(context), tag, context->world);
      else side_recv_init(&freed[0], (struct shape){1, 64, MPI_BYTE}, before_of(context), tag, context->world);
      side_destroy(&freed[0]);
      MPI(MPI_Barrier(context->world));
      if (early == 0) side_recv_init(&freed[1], (struct shape){1, 64, MPI_BYTE}, before_of(context), tag, context->world);
      else side_send_init(&freed[1], (struct shape){1, 64, MPI_BYTE}, next_of(context), tag, context->world);
      side_recv_init(&receives, (struct shape){1, 64, MPI_BYTE}, before_of(context), tag, context->world);
      side_send_init(&sends, (struct shape){1, 64, MPI_BYTE}, next_of(context), tag, context->world);
      for (uint64_t i = 0; i < 4; i++) {
        side_prepare(&sends, i, 1);
        side_prepare(&receives, i, 1);
        MPI(MPI_Start(&sends.request));
        MPI(MPI_Start(&receives.request));
        MPI(MPI_Pready(0, sends.request));
        MPI(MPI_Wait(&receives.request, MPI_STATUS_IGNORE));
        MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
        side_check(&receives, i, 1);
      }
      side_destroy(&freed[1]);
      side_destroy(&sends);
      side_destroy(&receives);
    }
}

/* Init, start and even Pready of one side come long before the other side's init. */
static void late_partner(const struct context *context) {
  for (int tag = 2; tag <= 20000; tag *= 10000)
    for (int late = 0; late < 2; late++)
      for (int64_t size = 8; size <= 1 << 18; size *= 1 << 15) {
        struct side sends, receives;
        const struct shape shape = {4, size, MPI_BYTE};
        if (late == 0) {
          side_send_init(&sends, shape, next_of(context), tag, context->world);
          side_prepare(&sends, 0, 2);
          MPI(MPI_Start(&sends.request));
          pready_all(sends.request, 4, RANDOM, 1);
        } else {
          side_recv_init(&receives, shape, before_of(context), tag, context->world);
          side_prepare(&receives, 0, 2);
          MPI(MPI_Start(&receives.request));
        }
        MPI(MPI_Barrier(context->world));
        if (late == 0) {
          side_recv_init(&receives, shape, before_of(context), tag, context->world);
          side_prepare(&receives, 0, 2);
          MPI(MPI_Start(&receives.request));
        } else {
          side_send_init(&sends, shape, next_of(context), tag, context->world);
          side_prepare(&sends, 0, 2);
          MPI(MPI_Start(&sends.request));
          pready_all(sends.request, 4, RANDOM, 1);
        }
        MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
        MPI(MPI_Wait(&receives.request, MPI_STATUS_IGNORE));
        side_check(&receives, 0, 2);
        side_destroy(&sends);
        side_destroy(&receives);
      }
}

/* Generations of channels: some freed, new ones of the same tag made while others live. */
static void generations(const struct context *context) {
  enum { LIVE = 12, GENERATIONS = 60 };
  struct side sends[LIVE] = {0}, receives[LIVE] = {0};
  uint64_t random = 42; /* the same on every rank */
  for (int g = 0; g < GENERATIONS; g++)
    for (int c = 0; c < LIVE; c++) {
      if (sends[c].memory && random_below(&random, 3) == 0) {
        side_destroy(&sends[c]);
        side_destroy(&receives[c]);
      }
      if (!sends[c].memory) {
        side_send_init(&sends[c], (struct shape){2, 10, MPI_BYTE}, next_of(context), 3, context->world);
        side_recv_init(&receives[c], (struct shape){2, 10, MPI_BYTE}, before_of(context), 3, context->world);
      }
      const uint64_t i = (uint64_t)g;
      side_prepare(&sends[c], i, (uint64_t)c);
      side_prepare(&receives[c], i, (uint64_t)c);
      MPI_Request both[2] = {sends[c].request, receives[c].request};
      MPI(MPI_Startall(2, both));
      pready_all(both[0], 2, REVERSE, 0);
      MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
      side_check(&receives[c], i, (uint64_t)c);
    }
  for (int c = 0; c < LIVE; c++) {
    side_destroy(&sends[c]);
    side_destroy(&receives[c]);
  }
}

/* Channels of up to a hundred partitions take turns, so that the ranges of tags that they had are given out again. */
static void generations_of_many_segments(const struct context *context) {
  enum { GENERATIONS = 60, CHANNELS = 12, MAX_PARTITIONS = 100 };
  uint64_t state = 5;
  for (uint64_t g = 0; g < GENERATIONS && !case_failed(); g++) {
    struct side sends[CHANNELS], receives[CHANNELS];
    MPI_Request requests[2 * CHANNELS];
    int freed_at[CHANNELS];
    for (int c = 0; c < CHANNELS; c++) {
      const struct shape shape = {1 + random_below(&state, MAX_PARTITIONS), 3, MPI_BYTE};
      const int tag = random_below(&state, 4000);
      side_send_init(&sends[c], shape, next_of(context), tag, context->world);
      side_recv_init(&receives[c], shape, before_of(context), tag, context->world);
      freed_at[c] = c;
    }
    for (uint64_t i = 0; i < 3; i++) {
      for (int c = 0; c < CHANNELS; c++) {
        side_prepare(&sends[c], i, g * CHANNELS + (uint64_t)c);
        side_prepare(&receives[c], i, g * CHANNELS + (uint64_t)c);
        requests[2 * c] = sends[c].request;
        requests[2 * c + 1] = receives[c].request;
      }
      MPI(MPI_Startall(2 * CHANNELS, requests));
      for (int c = 0; c < CHANNELS; c++) pready_all(sends[c].request, sends[c].shape.num_partitions, RANDOM, g);
      MPI(MPI_Waitall(2 * CHANNELS, requests, MPI_STATUSES_IGNORE));
      for (int c = 0; c < CHANNELS; c++) side_check(&receives[c], i, g * CHANNELS + (uint64_t)c);
    }
    random_shuffle(&state, freed_at, CHANNELS);
    for (int c = 0; c < CHANNELS; c++) {
      side_destroy(&sends[freed_at[c]]);
      side_destroy(&receives[CHANNELS - 1 - c]);
    }
  }
}

/* Batches of requests; the first and the last of each batch carry data, the rest is freed unused. */
static void hundred_thousand(const struct context *context, bool same) {
  enum { BATCH = 250, REQUESTS = 100000 };
  if (context->num_ranks > 2) {
    case_skip("two ranks show it");
    return;
  }
  const int bound = largest_tag(context);
  MPI_Request sends[BATCH], receives[BATCH];
  unsigned char sent[2][16], received[2][16];
  int made = 0;
  for (uint64_t b = 0; made < REQUESTS && !case_failed(); b++) {
    for (int c = 0; c < BATCH; c++, made += 2) {
      const int tag = same ? 19 : (int)(((int64_t)made * 7919) % ((int64_t)bound + 1));
      const int pair = c == 0 ? 0 : 1;
      MPI(MPI_Psend_init(sent[pair], 2, 8, MPI_BYTE, next_of(context), tag, context->world, MPI_INFO_NULL, &sends[c]));
      MPI(MPI_Precv_init(received[pair], 4, 4, MPI_BYTE, before_of(context), tag, context->world, MPI_INFO_NULL, &receives[c]));
    }
    for (int pair = 0; pair < 2; pair++) {
      const int c = pair ? BATCH - 1 : 0;
      pattern_fill(sent[pair], 16, b, (uint64_t)pair);
      MPI_Request both[2] = {receives[c], sends[c]};
      MPI(MPI_Startall(2, both));
      pready_all(both[1], 2, FORWARD, 0);
      MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
      EXPECT(pattern_first_wrong(received[pair], 0, 16, b, (uint64_t)pair) < 0, "the data of request %d is wrong", made);
    }
    for (int c = 0; c < BATCH; c++) {
      MPI(MPI_Request_free(&sends[c]));
      MPI(MPI_Request_free(&receives[BATCH - 1 - c]));
    }
  }
}

static void hundred_thousand_of_one_tag(const struct context *context) { hundred_thousand(context, true); }
static void hundred_thousand_of_many_tags(const struct context *context) { hundred_thousand(context, false); }

const struct test_case matching_cases[] = {
    {"ten_channels_of_one_tag_match_in_init_order", ten_channels, 0},
    {"two_hundred_live_channels_of_one_tag_match_in_init_order", two_hundred_channels, 30},
    {"more_live_channels_than_the_smallest_tag_space_has_match", more_channels_than_tags, 60},
    {"channels_of_several_tags_match_in_init_order", channels_of_few_tags, 30},
    {"every_tag_up_to_tag_ub_delivers", every_tag, 0},
    {"a_request_freed_unused_keeps_its_place_in_the_matching_order", freed_before_the_match, 0},
    {"a_request_freed_before_its_partner_is_made_keeps_its_place", freed_early_on_one_side, 0},
    {"a_partner_may_come_late", late_partner, 0},
    {"generations_of_channels_match", generations, 0},
    {"tags_of_channels_of_many_segments_are_given_out_again", generations_of_many_segments, 30},
    {"a_hundred_thousand_requests_of_one_tag_can_be_made_and_freed", hundred_thousand_of_one_tag, 60},
    {"a_hundred_thousand_requests_of_many_tags_can_be_made_and_freed", hundred_thousand_of_many_tags, 60},
    {0},
};
