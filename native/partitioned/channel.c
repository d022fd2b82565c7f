/* The life of a channel: made, started, made ready or arrived, finished, freed. */
#include "partitioned/channel.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/adapt.h"
#include "partitioned/buffer.h"
#include "partitioned/issue.h"
#include "partitioned/outbox.h"
#include "partitioned/record.h"
#include "partitioned/wire.h"
#include "partitioned/world.h"

/* Below so many partitions every one has a cache line of its own where threads can meet. */
#define MAX_SPREAD_PARTITIONS 4096

/* Channels are kept when freed: a search of the table in another thread may still be on one. */
static eb_channel *unused;

static eb_channel *take_unused(void) {
  eb_lock();
  eb_channel *channel = unused;
  if (channel) unused = channel->next_expecting;
  eb_unlock();
  if (channel) {
    /* All but the entry, which a search may be reading. */
    memset((char *)channel + sizeof channel->entry, 0, sizeof *channel - sizeof channel->entry);
    return channel;
  }
  channel = aligned_alloc(_Alignof(eb_channel), sizeof *channel);
  if (channel) memset(channel, 0, sizeof *channel);
  return channel;
}

static void put_unused(eb_channel *channel) {
  eb_lock();
  channel->next_expecting = unused;
  unused = channel;
  eb_unlock();
}

/* Forgets a channel that nobody refers to any more. */
static void destroy(eb_channel *channel) {
  eb_wire_drop(channel);
  eb_segments_free(&channel->segments);
  eb_segments_free(&channel->next_segments);
  eb_buffer_end(channel);
  eb_adapt_end(channel);
  free(channel->partitions);
  eb_view_release(channel->view);
  put_unused(channel);
}

/* Neighbouring tags and successive requests go to different lanes; both sides compute the same. */
static int canonical_lane(const eb_channel *channel, int64_t order) {
  return (int)((channel->tag + order) % channel->view->shadow->num_lanes);
}

/* The tags of a sender: canonical where both sides know them, else fresh ids that the receiver is told. */
static int set_up_sender(eb_channel *channel, bool is_canonical, int64_t order) {
  eb_shadow *shadow = channel->view->shadow;
  const int64_t step_bytes =
      eb_mode_step_bytes(eb_world.settings.mode, channel->num_partitions, channel->partition_bytes);
  int rc = eb_wire_cut(channel, step_bytes);
  if (rc != MPI_SUCCESS || channel->peer == MPI_PROC_NULL) return rc;
  channel->lane = canonical_lane(channel, order);
  if (is_canonical && channel->segments.num <= eb_tags_max_segments(&shadow->tags)) {
    channel->base = eb_tags_canonical_base(&shadow->tags, channel->tag, (uint64_t)order);
    channel->num_ids = 1;
    return eb_wire_build(channel);
  }
  eb_matching_collect(shadow);
  eb_shadows_sweep();
  channel->num_ids = eb_tags_ids_needed(&shadow->tags, channel->segments.num);
  eb_lock();
  channel->first_id = eb_ids_take(&shadow->ids, channel->num_ids);
  eb_unlock();
  if (channel->first_id < 0) {
    channel->first_id = 0;
    return MPI_ERR_OTHER;
  }
  channel->base = eb_tags_channel_base(&shadow->tags, channel->first_id);
  channel->is_copying = true;
  const eb_setup setup = {.context = channel->view->context,
                          .total_bytes = channel->total_bytes,
                          .step_bytes = step_bytes,
                          .first_id = channel->first_id,
                          .num_ids = channel->num_ids,
                          .tag = channel->tag,
                          .lane = channel->lane};
  return eb_matching_announce(shadow, channel->peer, &setup);
}

static int set_up_receiver(eb_channel *channel, bool is_canonical, int64_t order) {
  eb_shadow *shadow = channel->view->shadow;
  channel->num_ids = 1;
  int rc = eb_wire_cut(channel, 0);
  if (rc != MPI_SUCCESS || channel->peer == MPI_PROC_NULL) return rc;
  channel->lane = canonical_lane(channel, order);
  if (is_canonical && channel->segments.num <= eb_tags_max_segments(&shadow->tags)) {
    channel->base = eb_tags_canonical_base(&shadow->tags, channel->tag, (uint64_t)order);
    return eb_wire_build(channel);
  }
  eb_matching_expect(channel);
  return MPI_SUCCESS;
}

static const eb_cost *cost_to(const eb_view *view, int peer) {
  const bool is_near = peer == MPI_PROC_NULL || view->shadow->is_near[peer];
  return is_near ? &eb_world.settings.intra_node : &eb_world.settings.inter_node;
}

static int fill(eb_channel *channel, const eb_channel_arguments *arguments) {
  eb_view *view = channel->view;
  channel->is_send = arguments->is_send;
  channel->peer = arguments->peer;
  channel->tag = arguments->tag;
  channel->base = -1;
  channel->mode = eb_settings_mode(&eb_world.settings, arguments->info);
  channel->cost = cost_to(view, channel->peer);
  int rc = eb_buffer_begin(channel, arguments->buffer, arguments->num_partitions, arguments->count, arguments->type);
  if (rc != MPI_SUCCESS) return rc;
  const bool spread = eb_world.multiple && channel->num_partitions <= MAX_SPREAD_PARTITIONS;
  channel->partition_stride = spread ? 64 : sizeof(eb_partition_state);
  channel->partitions = calloc((size_t)channel->num_partitions, channel->partition_stride);
  if (!channel->partitions) return MPI_ERR_NO_MEM;
  int64_t order = 0;
  if (channel->peer != MPI_PROC_NULL && view->context == 0) {
    eb_lock();
    order = eb_view_next_order(channel->is_send ? &view->sends : &view->receives, channel->peer, channel->tag);
    eb_unlock();
    if (order < 0) return MPI_ERR_NO_MEM;
  }
  /* Decided by what both sides know alike: the settings are everybody's, an info key is the sender's alone. */
  const bool is_canonical = view->context == 0 && eb_world.settings.mode.kind == EB_AUTO &&
                            eb_tags_is_canonical(&view->shadow->tags, channel->tag, (uint64_t)order);
  rc = eb_adapt_begin(channel);
  if (rc != MPI_SUCCESS) return rc;
  return channel->is_send ? set_up_sender(channel, is_canonical, order) : set_up_receiver(channel, is_canonical, order);
}

int eb_channel_make(eb_view *view, const eb_channel_arguments *arguments, eb_channel **made) {
  eb_outbox_progress();
  eb_channel *channel = take_unused();
  if (!channel) return MPI_ERR_NO_MEM;
  channel->type = MPI_DATATYPE_NULL;
  channel->record = -1;
  eb_trial_begin(&channel->trial);
  channel->view = view;
  eb_view_retain(view);
  /* A request that is never started: what the user holds, unique and freeable on every MPI. Its peer is oneself,
   * because Intel MPI's Testany takes an inactive one of MPI_PROC_NULL for completed. Made before anything is told to
   * the other side, so that little can fail afterwards. */
  MPI_Request handle;
  int rc = PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, 0, eb_world.self, &handle);
  if (rc == MPI_SUCCESS) {
    channel->entry.handle = handle;
    eb_lock();
    if (eb_requests_add(&channel->entry) != 0) rc = MPI_ERR_NO_MEM;
    eb_unlock();
    if (rc == MPI_SUCCESS && (rc = fill(channel, arguments)) != MPI_SUCCESS) {
      eb_lock();
      eb_requests_remove(&channel->entry);
      eb_unlock();
    }
    if (rc != MPI_SUCCESS) PMPI_Request_free(&handle);
  }
  if (rc != MPI_SUCCESS) {
    destroy(channel);
    return rc;
  }
  eb_record_made(channel);
  *made = channel;
  return MPI_SUCCESS;
}

void eb_channel_take_setup(eb_channel *channel, const eb_setup *setup) {
  channel->first_id = setup->first_id;
  channel->num_ids = setup->num_ids;
  channel->lane = setup->lane;
  if (channel->is_freed) {
    /* Freed before it was matched: it has consumed its place in the order, and that is all. */
    (void)eb_matching_release(channel->view->shadow, channel->peer, channel->first_id, channel->num_ids);
    destroy(channel);
    return;
  }
  int rc = setup->total_bytes == channel->total_bytes ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
  if (rc == MPI_SUCCESS && setup->step_bytes) rc = eb_wire_cut(channel, setup->step_bytes);
  if (rc != MPI_SUCCESS) atomic_store(&channel->error, rc);
  /* Another thread may be waiting to post: it looks at nothing else before it has seen this. */
  atomic_store_explicit(&channel->base, eb_tags_channel_base(&channel->view->shadow->tags, setup->first_id), memory_order_release);
}

/* Posts a receiver's segments. */
static int post(eb_channel *channel) {
  int rc = atomic_load(&channel->error);
  if (rc == MPI_SUCCESS && !channel->is_built) rc = eb_wire_build(channel);
  if (rc != MPI_SUCCESS || channel->peer == MPI_PROC_NULL) return rc;
  if (channel->segments.num == 1) return PMPI_Start(&channel->requests[0]);
  return PMPI_Startall(channel->segments.num, channel->requests);
}

/* For the thread that has `testing` alone. */
static int post_deferred(eb_channel *channel) {
  if (channel->base < 0) {
    eb_matching_progress(channel->view->shadow);
    if (channel->base < 0) return MPI_SUCCESS;
  }
  const int rc = post(channel);
  channel->is_deferred = false;
  return rc;
}

/* Uses what the last plan said. */
static int adopt_plan(eb_channel *channel) {
  if (channel->next_segments.num == 0) return MPI_SUCCESS;
  eb_wire_drop(channel);
  eb_segments_free(&channel->segments);
  channel->segments = channel->next_segments;
  channel->next_segments = (eb_segments){0, NULL};
  return eb_wire_map(channel);
}

static int start_sender(eb_channel *channel) {
  int rc = MPI_SUCCESS;
  if (!channel->is_built && !channel->is_copying) rc = eb_wire_build(channel);
  for (int s = 0; s < channel->segments.num; s++) {
    atomic_store_explicit(&channel->states[s].num_unready, channel->states[s].num_partitions, memory_order_relaxed);
    atomic_store_explicit(&channel->states[s].arrived, false, memory_order_relaxed);
  }
  atomic_store_explicit(&channel->num_unissued, channel->segments.num, memory_order_release);
  atomic_store_explicit(&channel->own_s, 0, memory_order_relaxed);
  atomic_store_explicit(&channel->looks_s, 0, memory_order_relaxed);
  if (channel->record >= 0) {
    channel->started_s = eb_stopwatch_s();
    channel->clock_ahead_s = eb_now_s() - channel->started_s;
  }
  return rc;
}

static int start_receiver(eb_channel *channel) {
  /* Until the base is there, another thread that takes the setup may be building the states; they are made clear. */
  if (channel->base < 0 && channel->peer != MPI_PROC_NULL) {
    channel->is_deferred = true;
    return post_deferred(channel);
  }
  for (int s = 0; s < channel->segments.num; s++)
    atomic_store_explicit(&channel->states[s].arrived, false, memory_order_relaxed);
  return post(channel);
}

int eb_channel_start(eb_channel *channel) {
  eb_outbox_progress();
  channel->num_starts++;
  if (++channel->stamp == 0) channel->stamp = 1;
  /* The first data of a channel is sent from copies: the receiver may be anywhere, even blocked in a call that
   * waits for us, before it has taken the setup, and our completion must not depend on it. */
  if (channel->is_copying && channel->num_starts == 2) channel->is_copying = false;
  int rc = atomic_load(&channel->error); /* of an earlier start: the two sides no longer agree */
  if (rc == MPI_SUCCESS) rc = adopt_plan(channel);
  /* A receiver's second start comes after its first transfer, so its tags are known by now. */
  if (rc == MPI_SUCCESS) rc = eb_adapt_exchange(channel);
  if (rc == MPI_SUCCESS) rc = eb_adapt_start(channel);
  if (rc == MPI_SUCCESS) rc = channel->is_send ? start_sender(channel) : start_receiver(channel);
  if (rc != MPI_SUCCESS) return eb_channel_fail(channel, rc); /* a plan's receive may be posted already */
  atomic_store_explicit(&channel->is_active, true, memory_order_release);
  return rc;
}

void eb_channel_issue(eb_channel *channel, int segment) {
  const bool is_recorded = channel->record >= 0;
  const double begin_s = is_recorded ? eb_stopwatch_s() : 0, traced_s = eb_record_on ? eb_now_s() : 0;
  int rc = MPI_SUCCESS;
  if (channel->is_copying) {
    const int64_t begin = channel->segments.first_byte[segment];
    rc = eb_outbox_send(EB_LETTER_DATA, eb_buffer_wire(channel) + begin, (size_t)(channel->segments.first_byte[segment + 1] - begin),
                        channel->peer, channel->base + segment, channel->view->shadow->lanes[channel->lane]);
  } else if (channel->peer != MPI_PROC_NULL) {
    rc = PMPI_Start(&channel->requests[segment]);
  }
  if (rc != MPI_SUCCESS) atomic_store(&channel->error, rc);
  if (is_recorded) {
    const double own_s = atomic_load_explicit(&channel->own_s, memory_order_relaxed) + eb_stopwatch_s() - begin_s;
    atomic_store_explicit(&channel->own_s, own_s, memory_order_relaxed);
  }
  if (eb_record_on) eb_record_segment_sent(channel, segment, traced_s);
  atomic_fetch_sub_explicit(&channel->num_unissued, 1, memory_order_release);
}

/* Kept out of the way of the ordinary Pready. */
__attribute__((noinline))
static void note_ready(eb_channel *channel, int partition) {
  if (channel->record >= 0) {
    const double now_s = eb_stopwatch_s();
    const double looks_s = atomic_load_explicit(&channel->looks_s, memory_order_relaxed);
    const double own_s = atomic_load_explicit(&channel->own_s, memory_order_relaxed) + looks_s;
    /* Of the last one, whichever thread that is. */
    const double spent_s = now_s - channel->started_s;
    atomic_store_explicit(&channel->done_s[channel->record], channel->clock_ahead_s + now_s, memory_order_relaxed);
    atomic_store_explicit(&channel->spent_s[channel->record][0], spent_s, memory_order_relaxed);
    atomic_store_explicit(&channel->spent_s[channel->record][1], own_s, memory_order_relaxed);
    channel->ready_s[(size_t)partition * EB_PLAN_RECORDS + (size_t)channel->record] = spent_s - own_s;
    /* Looking at the clock is no work of the program's either. Two threads at once may count one look: a trifle. */
    atomic_store_explicit(&channel->looks_s, looks_s + eb_clock.look_s, memory_order_relaxed);
  }
  if (eb_record_on) eb_record_pready(channel, partition);
}

int eb_channel_pready(eb_channel *channel, int partition) {
  eb_partition_state *state = eb_partition(channel, partition);
  const uint32_t stamp = channel->stamp;
  /* Not an atomic exchange: two threads that make one partition ready at once are two errors already. */
  if (__builtin_expect(atomic_load_explicit(&state->done_at, memory_order_relaxed) == stamp, 0)) return MPI_ERR_ARG;
  atomic_store_explicit(&state->done_at, stamp, memory_order_relaxed);
  if (__builtin_expect(channel->record >= 0 || eb_record_on, 0)) note_ready(channel, partition);
  if (__builtin_expect(channel->staging != NULL, 0)) {
    /* Told when the request completes: the segment leaves all the same, for the receiver waits for it. */
    const int rc = eb_buffer_pack(channel, partition);
    if (rc != MPI_SUCCESS) atomic_store(&channel->error, rc);
  }
  /* Read before the last segment is given up: from then on a thread that waits may start the request anew with other
   * segments, or free it. */
  const int last_segment = state->last_segment;
  for (int s = state->first_segment; s <= last_segment; s++) {
    eb_segment_state *segment = &channel->states[s];
    if (eb_world.multiple) {
      if (atomic_fetch_sub_explicit(&segment->num_unready, 1, memory_order_acq_rel) == 1) eb_issue(channel, s);
    } else {
      const int left = atomic_load_explicit(&segment->num_unready, memory_order_relaxed) - 1;
      atomic_store_explicit(&segment->num_unready, left, memory_order_relaxed);
      if (left == 0) eb_issue(channel, s);
    }
  }
  return MPI_SUCCESS;
}

/* Asks the MPI about the segments one by one, so that arrivals can be told apart. */
static int test_each(eb_channel *channel, bool *done) {
  *done = true;
  for (int s = 0; s < channel->segments.num; s++) {
    eb_segment_state *state = &channel->states[s];
    if (atomic_load_explicit(&state->arrived, memory_order_relaxed)) continue;
    int flag = 1;
    if (channel->requests[s] != MPI_REQUEST_NULL) {
      const int rc = eb_wire_test_one(channel, s, &flag);
      if (rc != MPI_SUCCESS) return rc;
    }
    if (flag) {
      if (!channel->is_send) eb_record_segment_arrived(channel, s);
      atomic_store_explicit(&state->arrived, true, memory_order_release);
    }
    *done = *done && flag;
  }
  if (*done && channel->requests[channel->segments.num] != MPI_REQUEST_NULL) {
    int flag = 0;
    const int rc = eb_wire_test_one(channel, channel->segments.num, &flag);
    *done = flag;
    return rc;
  }
  return MPI_SUCCESS;
}

static bool has_arrived(const eb_channel *channel, const eb_partition_state *partition) {
  for (int s = partition->first_segment; s <= partition->last_segment; s++)
    if (!atomic_load_explicit(&channel->states[s].arrived, memory_order_relaxed)) return false;
  return true;
}

/* Hands partitions over whose segments are known to have arrived: all of them, where `all`. For the thread that has the
 * channel. */
static int unpack(eb_channel *channel, bool all) {
  int rc = MPI_SUCCESS;
  for (int p = 0; channel->staging && rc == MPI_SUCCESS && p < channel->num_partitions; p++) {
    eb_partition_state *partition = eb_partition(channel, p);
    if (atomic_load_explicit(&partition->done_at, memory_order_relaxed) == channel->stamp) continue;
    if (!all && !has_arrived(channel, partition)) continue;
    rc = eb_buffer_unpack(channel, p);
    atomic_store_explicit(&partition->done_at, channel->stamp, memory_order_release);
  }
  return rc;
}

/* Brings a channel to where only the MPI's requests are left; *ready tells whether it is there. */
static int prepare(eb_channel *channel, bool *ready) {
  *ready = false;
  eb_outbox_progress();
  if (channel->is_deferred) {
    const int rc = post_deferred(channel);
    if (rc != MPI_SUCCESS || channel->is_deferred) return rc;
  }
  if (channel->is_send && atomic_load_explicit(&channel->num_unissued, memory_order_acquire) > 0) {
    eb_issue_drain(channel->lane);
    if (atomic_load_explicit(&channel->num_unissued, memory_order_acquire) > 0) {
      /* Segments that have left still need the MPI's progress; a probe makes it without touching them. */
      int flag;
      return PMPI_Iprobe(MPI_ANY_SOURCE, eb_tags_control(&channel->view->shadow->tags, EB_CONTROL_SETUP),
                         channel->view->shadow->comm, &flag, MPI_STATUS_IGNORE);
    }
  }
  if (channel->proposes) eb_adapt_propose(channel);
  *ready = true;
  return atomic_load_explicit(&channel->error, memory_order_relaxed);
}

/* Are all segments complete, and the plan? */
static int test_all(eb_channel *channel, bool *done) {
  return eb_record_on ? test_each(channel, done) : eb_wire_test(channel, done);
}

/* Takes a channel for this thread; false while another one has it: the status of a request and the arrival of a
 * partition may be asked for while another thread waits. */
static bool take_for_testing(eb_channel *channel) {
  return !atomic_flag_test_and_set_explicit(&channel->testing, memory_order_acquire);
}

static void let_go(eb_channel *channel) { atomic_flag_clear_explicit(&channel->testing, memory_order_release); }

int eb_channel_test(eb_channel *channel, bool *done) {
  *done = false;
  bool ready;
  if (!take_for_testing(channel)) return MPI_SUCCESS;
  int rc = prepare(channel, &ready);
  if (rc == MPI_SUCCESS && ready && channel->is_copying) *done = true; /* the copies are the outbox's */
  else if (rc == MPI_SUCCESS && ready) rc = test_all(channel, done);
  let_go(channel);
  return rc;
}

/* Are setups to come, which somebody should take in meanwhile? libfabric's tcp provider, which Intel MPI and MPICH use,
 * stops receiving from a peer that has 64 unexpected messages (FI_TCP_MAX_SAVED): what we wait for could be behind them. */
static bool expects_setups(const eb_shadow *shadow) {
  return atomic_load_explicit(&shadow->num_expecting, memory_order_relaxed) > 0;
}

/* May a thread ask for partitions, and depend on the answer, while another one waits for all of them? */
static bool may_be_asked(const eb_channel *channel) {
  return eb_world.multiple && !channel->is_send && channel->segments.num > 1;
}

static int wait_for(eb_channel *channel) {
  eb_shadow *shadow = channel->view->shadow;
  for (;;) {
    bool ready;
    int rc = prepare(channel, &ready);
    if (rc != MPI_SUCCESS) return rc;
    if (ready) {
      if (channel->is_copying) return MPI_SUCCESS;
      if (!eb_record_on && !expects_setups(shadow) && !may_be_asked(channel)) return eb_wire_wait(channel);
      if (atomic_exchange_explicit(&channel->is_asked, false, memory_order_relaxed)) {
        rc = test_each(channel, &ready);
        if (rc == MPI_SUCCESS) rc = unpack(channel, false);
      } else {
        rc = test_all(channel, &ready);
      }
      if (rc != MPI_SUCCESS || ready) return rc;
    }
    if (expects_setups(shadow)) eb_matching_progress(shadow);
    sched_yield(); /* other threads of ours are to be waited for: they may need this core */
  }
}

int eb_channel_wait(eb_channel *channel) {
  const double begin_s = eb_record_on ? eb_now_s() : 0;
  while (!take_for_testing(channel)) sched_yield();
  const int rc = wait_for(channel);
  let_go(channel);
  if (eb_record_on) eb_record_waited(channel, begin_s);
  return rc;
}

void eb_status_empty(MPI_Status *status) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  PMPI_Status_set_elements_x(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
}

void eb_channel_fill_status(const eb_channel *channel, MPI_Status *status) {
  if (status == MPI_STATUS_IGNORE) return;
  eb_status_empty(status);
  if (channel->is_send) return;
  status->MPI_SOURCE = channel->peer;
  if (channel->peer == MPI_PROC_NULL) return;
  status->MPI_TAG = channel->tag;
  PMPI_Status_set_elements_x(status, MPI_BYTE, channel->total_bytes);
}

int eb_channel_deliver(eb_channel *channel) {
  if (channel->is_send || !channel->staging) return MPI_SUCCESS;
  while (!take_for_testing(channel)) sched_yield();
  const int rc = unpack(channel, true);
  let_go(channel);
  return rc;
}

int eb_channel_finish(eb_channel *channel, MPI_Status *status) {
  int rc = MPI_SUCCESS;
  if (!channel->is_send) {
    if (channel->record >= 0) channel->done_s[channel->record] = eb_now_s();
    rc = eb_channel_deliver(channel);
    if (rc == MPI_SUCCESS) rc = eb_adapt_finish(channel);
  }
  if (eb_record_on) eb_record_finished(channel);
  eb_channel_fill_status(channel, status);
  /* Last: a thread that asks for arrivals meanwhile takes an inactive request for one whose data is in place. */
  atomic_store_explicit(&channel->is_active, false, memory_order_release);
  return rc;
}

int eb_channel_fail(eb_channel *channel, int code) {
  atomic_store(&channel->error, code);
  eb_wire_abandon(channel);
  atomic_store_explicit(&channel->is_active, false, memory_order_release);
  return code;
}

int eb_channel_parrived(eb_channel *channel, int partition, bool *arrived) {
  *arrived = true;
  eb_partition_state *state = eb_partition(channel, partition);
  /* One thread asks; the others see what it found. */
  const bool asks = take_for_testing(channel);
  int rc = MPI_SUCCESS;
  if (asks && channel->is_deferred) rc = post_deferred(channel);
  if (channel->is_deferred) *arrived = false;
  /* Which segments these are is known no sooner: with the setup they may change. */
  const int first_segment = *arrived ? state->first_segment : 0;
  for (int s = first_segment; rc == MPI_SUCCESS && *arrived && s <= state->last_segment; s++) {
    eb_segment_state *segment = &channel->states[s];
    int flag = atomic_load_explicit(&segment->arrived, memory_order_acquire);
    if (!flag && asks && channel->requests[s] == MPI_REQUEST_NULL) flag = 1; /* MPI_PROC_NULL */
    else if (!flag && asks) rc = eb_wire_test_one(channel, s, &flag);
    if (flag && asks && !atomic_exchange_explicit(&segment->arrived, true, memory_order_release) && eb_record_on)
      eb_record_segment_arrived(channel, s);
    *arrived = flag;
  }
  if (rc == MPI_SUCCESS && *arrived && channel->staging &&
      atomic_load_explicit(&state->done_at, memory_order_acquire) != channel->stamp) {
    if (asks) {
      rc = eb_buffer_unpack(channel, partition);
      atomic_store_explicit(&state->done_at, channel->stamp, memory_order_release);
    } else {
      *arrived = false; /* another thread may be unpacking it: told next time */
    }
  }
  if (asks) let_go(channel);
  else if (!*arrived) atomic_store_explicit(&channel->is_asked, true, memory_order_relaxed); /* whoever has it looks */
  return rc;
}

int eb_channel_free(eb_channel *channel, MPI_Request *handle) {
  eb_shadow *shadow = channel->view->shadow;
  bool is_unmatched = false;
  eb_buffer_end(channel); /* not under our lock, where the channel may end: freeing the datatype may call the program */
  eb_lock();
  eb_requests_remove(&channel->entry);
  if (channel->is_send) {
    if (channel->first_id) eb_ids_release(&shadow->ids, channel->first_id);
  } else if (channel->base < 0 && channel->peer != MPI_PROC_NULL) {
    is_unmatched = channel->is_freed = true; /* stays among the expecting until its setup has come */
  }
  eb_unlock();
  int rc = PMPI_Request_free(handle);
  if (is_unmatched) {
    eb_matching_progress_all();
    return rc;
  }
  if (!channel->is_send && channel->first_id) {
    const int released = eb_matching_release(shadow, channel->peer, channel->first_id, channel->num_ids);
    if (rc == MPI_SUCCESS) rc = released;
  }
  destroy(channel);
  return rc;
}
