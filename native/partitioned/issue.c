/* Per lane, a stack of complete segments that whoever holds the lock empties. */
#include "partitioned/issue.h"

#include "partitioned/world.h"

/* Of every lane; what threads meet on is apart. */
static struct {
  _Alignas(64) _Atomic(eb_segment_state *) ready;
  _Alignas(64) atomic_flag issuing;
} lanes[EB_MAX_LANES];

static void send(eb_segment_state *segment) {
  eb_channel_issue(segment->channel, (int)(segment - segment->channel->states));
}

/* The stack's order turned around: first complete, first sent. */
static eb_segment_state *take_all(int lane) {
  eb_segment_state *taken = atomic_exchange_explicit(&lanes[lane].ready, NULL, memory_order_acquire), *turned = NULL;
  while (taken) {
    eb_segment_state *const next = taken->next_ready;
    taken->next_ready = turned;
    turned = taken;
    taken = next;
  }
  return turned;
}

void eb_issue_drain(int lane) {
  /* Looked at again after letting go: a thread that pushed and found the lock taken has left its segment to us. */
  while (atomic_load_explicit(&lanes[lane].ready, memory_order_seq_cst)) {
    if (atomic_flag_test_and_set_explicit(&lanes[lane].issuing, memory_order_seq_cst)) return;
    for (eb_segment_state *segment = take_all(lane); segment;) {
      eb_segment_state *const next = segment->next_ready; /* after send() the segment may start anew */
      send(segment);
      segment = next;
    }
    atomic_flag_clear_explicit(&lanes[lane].issuing, memory_order_seq_cst);
  }
}

void eb_issue(eb_segment_state *segment) {
  if (!eb_world.multiple) {
    send(segment);
    return;
  }
  const int lane = segment->channel->lane;
  _Atomic(eb_segment_state *) *ready = &lanes[lane].ready;
  eb_segment_state *head = atomic_load_explicit(ready, memory_order_relaxed);
  do segment->next_ready = head;
  while (!atomic_compare_exchange_weak_explicit(ready, &head, segment, memory_order_seq_cst, memory_order_relaxed));
  eb_issue_drain(lane);
}
