/* Lanes: segments are spread over as many communicators of ours as EARLYBIRD_LANES says, on both sides by one rule. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

enum { NUM_CHANNELS = 16, MAX_LANES = 16, MAX_NOTED = 256, PARTITIONS = 4, PARTITION_BYTES = 1000 };
enum { FEW_STARTS = 4, STARTS_UNTIL_KEYS = 20 }; /* requests that are small use their keys from the 17th start on */

/* ---- What the library gives to the MPI ---- */

/* The library's communicators, in the order of the lanes. */
static MPI_Comm lanes[MAX_LANES];
static int num_duplicated;

typedef struct {
  const unsigned char *address;
  MPI_Comm comm;
} noted_message;

/* The last message from or to each address, of a side that is watched. */
typedef struct {
  const unsigned char *begin, *end;
  noted_message noted[MAX_NOTED];
  int num;
} watched_side;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static watched_side watched[2]; /* of a receiver, of a sender */
static bool uses_lane[MAX_LANES];

static int lane_of(MPI_Comm comm) {
  for (int lane = 0; lane < MAX_LANES; lane++)
    if (lanes[lane] == comm) return lane;
  return -1;
}

void note_message(const void *data, int count, MPI_Comm comm, bool is_sent) {
  watched_side *const side = &watched[is_sent];
  const unsigned char *const address = data;
  const int lane = lane_of(comm);
  if (count < PARTITION_BYTES / 2 || lane < 0) return; /* what else the library sends is much shorter */
  pthread_mutex_lock(&lock);
  if (is_sent) uses_lane[lane] = true;
  if (address >= side->begin && address < side->end) {
    int at = 0;
    while (at < side->num && side->noted[at].address != address) at++;
    if (at == side->num && side->num < MAX_NOTED) side->num++;
    if (at < MAX_NOTED) side->noted[at] = (noted_message){address, comm};
  }
  pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) int PMPI_Recv_init(void *data, int count, MPI_Datatype type, int source, int tag,
                                                          MPI_Comm comm, MPI_Request *request) {
  int (*const own)(void *, int, MPI_Datatype, int, int, MPI_Comm,
                   MPI_Request *) = (int (*)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))dlsym(RTLD_NEXT,
                                                                                                                 "PMPI_Recv_init");
  note_message(data, count, comm, false);
  return own(data, count, type, source, tag, comm, request);
}

/* The first calls are the library's, in MPI_Init, for all lanes but the first: EARLYBIRD_TESTS_LACKING_LANE lets the first call
 * fail on rank 0, and the other ranks must do without theirs, too. */
int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm *made) {
  int (*const own)(MPI_Comm, MPI_Comm *) = (int (*)(MPI_Comm, MPI_Comm *))dlsym(RTLD_NEXT, "PMPI_Comm_dup");
  int rank = 0;
  const int code = own(comm, made);
  pthread_mutex_lock(&lock); /* threads duplicate communicators side by side */
  const bool is_first = num_duplicated == 0;
  if (is_first) lanes[0] = comm;
  if (code == MPI_SUCCESS && ++num_duplicated < environment_number("EARLYBIRD_LANES", 1)) lanes[num_duplicated] = *made;
  pthread_mutex_unlock(&lock);
  if (code != MPI_SUCCESS || !is_first || !environment_number("EARLYBIRD_TESTS_LACKING_LANE", 0)) return code;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank > 0) return code;
  PMPI_Comm_free(made);
  return MPI_ERR_OTHER;
}

static int num_lanes(const struct context *context) {
  const bool has_many = context->level == MPI_THREAD_MULTIPLE && !environment_number("EARLYBIRD_TESTS_LACKING_LANE", 0);
  return has_many ? (int)environment_number("EARLYBIRD_LANES", 1) : 1;
}

/* Without lanes the library duplicates nothing, and its communicator is unknown here. */
static bool knows_lanes(const struct context *context) {
  if (num_lanes(context) > 1) return true;
  case_skip("this launch has one lane");
  return false;
}

static int next_of(const struct context *context) { return (context->rank + 1) % context->num_ranks; }

static int previous_of(const struct context *context) { return (context->rank + context->num_ranks - 1) % context->num_ranks; }

/* ---- Requests ---- */

/* Requests of one tag, canonical ones and others, all of them in flight at once. */
static void spread(const struct context *context, int tag) {
  struct side sends[NUM_CHANNELS], receives[NUM_CHANNELS];
  MPI_Request requests[2 * NUM_CHANNELS];
  memset(uses_lane, 0, sizeof uses_lane);
  for (int c = 0; c < NUM_CHANNELS; c++) {
    side_send_init(&sends[c], (struct shape){PARTITIONS, PARTITION_BYTES, MPI_BYTE}, next_of(context), tag, context->world);
    side_recv_init(&receives[c], (struct shape){PARTITIONS / 2, 2 * PARTITION_BYTES, MPI_BYTE}, previous_of(context), tag,
                   context->world);
  }
  for (uint64_t i = 0; i < FEW_STARTS; i++) {
    for (int c = 0; c < NUM_CHANNELS; c++) {
      side_prepare(&sends[c], i, (uint64_t)c);
      side_prepare(&receives[c], i, (uint64_t)c);
      requests[c] = receives[c].request;
      requests[NUM_CHANNELS + c] = sends[c].request;
    }
    MPI(MPI_Startall(2 * NUM_CHANNELS, requests));
    for (int c = NUM_CHANNELS - 1; c >= 0; c--) pready_all(sends[c].request, PARTITIONS, REVERSE, i);
    MPI(MPI_Waitall(2 * NUM_CHANNELS, requests, MPI_STATUSES_IGNORE));
    for (int c = 0; c < NUM_CHANNELS; c++) side_check(&receives[c], i, (uint64_t)c);
  }
  int num_used = 0;
  for (int lane = 0; lane < MAX_LANES; lane++) num_used += uses_lane[lane];
  if (num_lanes(context) > 1)
    EXPECT(num_used == num_lanes(context), "requests of tag %d went to %d communicators of %d", tag, num_used, num_lanes(context));
  else EXPECT(num_used <= 1, "requests of tag %d went to %d communicators", tag, num_used);
  for (int c = 0; c < NUM_CHANNELS; c++) {
    side_destroy(&sends[c]);
    side_destroy(&receives[c]);
  }
}

static void every_lane(const struct context *context) {
  spread(context, 4);
  spread(context, 30004);
}

/* ---- Segments ---- */

/* The lanes of a request, or what its keys ask for; 0: nothing, or nothing that makes sense. */
struct keys {
  const char *lanes, *partitions_per_thread;
  int num_lanes, num_neighbours;
};

static MPI_Info info_of(const struct keys *keys) {
  MPI_Info info;
  MPI(MPI_Info_create(&info));
  MPI(MPI_Info_set(info, "earlybird_segments", "partition"));
  if (keys->lanes) MPI(MPI_Info_set(info, "earlybird_lanes", keys->lanes));
  if (keys->partitions_per_thread) MPI(MPI_Info_set(info, "earlybird_partitions_per_thread", keys->partitions_per_thread));
  return info;
}

static void watch(bool sends, const struct side *side) {
  watched[sends] = (watched_side){.begin = side->buffer, .end = side->buffer + side->size};
}

/* Are the messages that begin at these bytes on the lanes of the rule? Of blocks of block_bytes, the k-th goes to the k-th of
 * `used` lanes, from that of the first byte on. Returns how many were looked at. */
static int check_rule(const struct context *context, bool sends, int used, size_t block_bytes, size_t step_bytes) {
  const watched_side *const side = &watched[sends];
  int first = -1, num = 0;
  for (int k = 0; k < side->num; k++)
    if (side->noted[k].address == side->begin) first = lane_of(side->noted[k].comm);
  if (first < 0) return 0; /* sent from a copy */
  for (int k = 0; k < side->num; k++) {
    const size_t byte = (size_t)(side->noted[k].address - side->begin);
    const int lane = lane_of(side->noted[k].comm);
    const int expected = (first + (int)(byte / block_bytes % (size_t)used)) % num_lanes(context);
    if (byte % step_bytes != 0) continue; /* of an earlier segmentation */
    num++;
    EXPECT(lane == expected, "the message %s byte %zu is on lane %d instead of %d; blocks of %zu bytes, %d lanes",
           sends ? "from" : "to", byte, lane, expected, block_bytes, used);
  }
  return num;
}

static void check_segments(const struct context *context, int num_sent, int num_received, int tag, const struct keys *keys) {
  enum { UNIT_BYTES = 16384 };
  const size_t total = (size_t)UNIT_BYTES * 48, bytes_sent = total / (size_t)num_sent;
  struct side send, receive;
  side_create(&send, (struct shape){num_sent, (MPI_Count)bytes_sent, MPI_BYTE}, true);
  side_create(&receive, (struct shape){num_received, (MPI_Count)(total / (size_t)num_received), MPI_BYTE}, false);
  MPI_Info info = info_of(keys);
  MPI_Request both[2];
  watch(true, &send);
  watch(false, &receive);
  MPI(MPI_Precv_init(receive.buffer, num_received, (MPI_Count)(total / (size_t)num_received), MPI_BYTE, previous_of(context), tag,
                     context->world, MPI_INFO_NULL, &receive.request));
  MPI(MPI_Psend_init(send.buffer, num_sent, (MPI_Count)bytes_sent, MPI_BYTE, next_of(context), tag, context->world, info,
                     &send.request));
  MPI(MPI_Info_free(&info));
  const size_t equal_bytes = (total + (size_t)num_lanes(context) - 1) / (size_t)num_lanes(context);
  for (uint64_t i = 0; i < STARTS_UNTIL_KEYS; i++) {
    side_prepare(&send, i, 1);
    side_prepare(&receive, i, 1);
    both[0] = receive.request;
    both[1] = send.request;
    MPI(MPI_Startall(2, both));
    pready_all(send.request, num_sent, RANDOM, i);
    for (int p = num_received - 1; i % 3 == 0 && p >= 0; p--)
      for (int has_arrived = 0; !has_arrived && !case_failed();) MPI(MPI_Parrived(receive.request, p, &has_arrived));
    MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    side_check(&receive, i, 1);
    /* Of canonical tags: without keys, which the receiver does not know yet. */
    if (i == 0 && tag < 32 && !getenv("EARLYBIRD_SEGMENTS") && !getenv("EARLYBIRD_TESTS_DUPLICATE"))
      for (int sends = 0; sends < 2; sends++)
        EXPECT(check_rule(context, sends, num_lanes(context), equal_bytes, 1) > 0, "no message of the first start was seen");
  }
  const int used = keys->num_lanes && keys->num_lanes < num_lanes(context) ? keys->num_lanes : num_lanes(context);
  const size_t block = keys->num_neighbours ? (size_t)keys->num_neighbours * bytes_sent : (total + (size_t)used - 1) / (size_t)used;
  for (int sends = 0; sends < 2; sends++) {
    const int num = check_rule(context, sends, used, block, bytes_sent);
    EXPECT(num == num_sent, "%d of %d segments were %s", num, num_sent, sends ? "sent" : "received");
  }
  watched[0] = watched[1] = (watched_side){0};
  side_destroy(&send);
  side_destroy(&receive);
}

static void by_the_rule(const struct context *context) {
  static const int partitions[][2] = {{8, 8}, {16, 4}, {3, 12}, {48, 1}};
  static const struct keys nothing = {0};
  if (!knows_lanes(context)) return;
  for (size_t p = 0; p < sizeof partitions / sizeof *partitions; p++) {
    check_segments(context, partitions[p][0], partitions[p][1], 3, &nothing);
    check_segments(context, partitions[p][0], partitions[p][1], 30003, &nothing);
  }
}

static void by_keys(const struct context *context) {
  static const struct keys keys[] = {
      {.partitions_per_thread = "1", .num_neighbours = 1},
      {.partitions_per_thread = "3", .num_neighbours = 3},
      {.partitions_per_thread = "2000000000", .num_neighbours = 12},
      {.lanes = "1", .num_lanes = 1},
      {.lanes = "2", .partitions_per_thread = "2", .num_lanes = 2, .num_neighbours = 2},
      {.lanes = "16"},
      /* Without sense. */
      {.lanes = "0", .partitions_per_thread = "0"},
      {.lanes = "17", .partitions_per_thread = "-1"},
      {.lanes = "two", .partitions_per_thread = "99999999999999999999"},
      {.lanes = "2 lanes", .partitions_per_thread = "1.5"},
  };
  if (!knows_lanes(context)) return;
  for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
    check_segments(context, 12, 6, 4, &keys[k]);
    check_segments(context, 12, 12, 30004, &keys[k]);
  }
}

/* ---- Threads ---- */

/* What a thread that sends does inside the MPI's call. */
static enum { PASS, MEET, HOLD } sending;
static atomic_int num_inside;
static atomic_bool may_leave;

void note_sending(void) {
  if (sending == PASS) return;
  const bool holds = atomic_fetch_add(&num_inside, 1) == 0 && sending == HOLD;
  const double end_s = MPI_Wtime() + 10;
  while ((holds ? !may_leave : sending == MEET && num_inside < 2) && MPI_Wtime() < end_s) sched_yield();
}

struct part {
  MPI_Request request;
  int first, num;
};

static void *make_part_ready(void *argument) {
  const struct part *part = argument;
  for (int p = part->first; p < part->first + part->num; p++) MPI(MPI_Pready(p, part->request));
  return NULL;
}

static void *wait_until_arrived(void *argument) {
  const struct part *part = argument;
  for (int p = part->first; p < part->first + part->num; p++)
    for (int has_arrived = 0; !has_arrived && !case_failed();) MPI(MPI_Parrived(part->request, p, &has_arrived));
  return NULL;
}

/* Threads with neighbouring partitions each, which other threads receive. */
static void side_by_side(const struct context *context) {
  enum { THREADS = 4, EACH = 3, BYTES = 6000, STARTS = 60 };
  if (context->level < MPI_THREAD_MULTIPLE) {
    case_skip("the thread level of this launch is too low");
    return;
  }
  static const struct keys each_thread = {.partitions_per_thread = "3"}, nothing = {0};
  for (int tag = 5; tag <= 30005; tag += 30000) {
    struct side send, receive;
    MPI_Info info = info_of(tag == 5 ? &each_thread : &nothing);
    if (tag != 5) MPI(MPI_Info_delete(info, "earlybird_segments")); /* those that the library finds by trial */
    side_create(&send, (struct shape){THREADS * EACH, BYTES, MPI_BYTE}, true);
    side_recv_init(&receive, (struct shape){THREADS * EACH, BYTES, MPI_BYTE}, previous_of(context), tag, context->world);
    MPI(MPI_Psend_init(send.buffer, THREADS * EACH, BYTES, MPI_BYTE, next_of(context), tag, context->world, info, &send.request));
    MPI(MPI_Info_free(&info));
    for (uint64_t i = 0; i < STARTS && !case_failed(); i++) {
      pthread_t threads[2 * THREADS];
      struct part parts[2 * THREADS];
      side_prepare(&send, i, 1);
      side_prepare(&receive, i, 1);
      MPI(MPI_Start(&receive.request));
      MPI(MPI_Start(&send.request));
      for (int t = 0; t < 2 * THREADS; t++) {
        parts[t] = (struct part){t < THREADS ? send.request : receive.request, t % THREADS * EACH, EACH};
        if (pthread_create(&threads[t], NULL, t < THREADS ? make_part_ready : wait_until_arrived, &parts[t]) != 0) abort();
      }
      MPI_Request both[2] = {send.request, receive.request};
      if (i % 2) MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE)); /* beside the threads */
      for (int t = 0; t < 2 * THREADS; t++) pthread_join(threads[t], NULL);
      MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
      side_check(&receive, i, 1);
    }
    side_destroy(&send);
    side_destroy(&receive);
  }
}

/* A request of two segments, which two threads complete; the first thread does so inside the MPI's call, and waits there as
 * `how` says. */
static void send_two(const struct context *context, int how, const struct keys *keys) {
  struct side send, receive;
  MPI_Info info = info_of(keys);
  MPI_Request both[2];
  side_create(&send, (struct shape){2, 1 << 16, MPI_BYTE}, true);
  side_recv_init(&receive, (struct shape){2, 1 << 16, MPI_BYTE}, previous_of(context), 7, context->world);
  MPI(MPI_Psend_init(send.buffer, 2, 1 << 16, MPI_BYTE, next_of(context), 7, context->world, info, &send.request));
  MPI(MPI_Info_free(&info));
  for (uint64_t i = 0; i <= STARTS_UNTIL_KEYS; i++) {
    side_prepare(&send, i, 1);
    side_prepare(&receive, i, 1);
    both[0] = receive.request;
    both[1] = send.request;
    MPI(MPI_Startall(2, both));
    if (i < STARTS_UNTIL_KEYS) {
      pready_all(send.request, 2, FORWARD, i);
    } else {
      struct part parts[2] = {{send.request, 0, 1}, {send.request, 1, 1}};
      pthread_t thread;
      num_inside = 0;
      may_leave = false;
      sending = how;
      if (pthread_create(&thread, NULL, make_part_ready, &parts[0]) != 0) abort();
      while (num_inside == 0) sched_yield();
      make_part_ready(&parts[1]);
      const int num_met = num_inside;
      may_leave = true;
      pthread_join(thread, NULL);
      sending = PASS;
      EXPECT(num_met == (how == MEET ? 2 : 1), "%d threads were inside the MPI at once", num_met);
    }
    MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    side_check(&receive, i, 1);
  }
  side_destroy(&send);
  side_destroy(&receive);
}

static void at_once(const struct context *context) {
  static const struct keys one_each = {.partitions_per_thread = "1"};
  if (knows_lanes(context)) send_two(context, MEET, &one_each);
}

static void left_to_the_other(const struct context *context) {
  static const struct keys both = {.partitions_per_thread = "2"};
  if (context->level < MPI_THREAD_MULTIPLE) case_skip("the thread level of this launch is too low");
  else send_two(context, HOLD, &both);
}

const struct test_case lane_cases[] = {
    {"requests_of_one_tag_use_every_lane", every_lane, 0},
    {"segments_are_sent_and_received_on_the_lanes_of_their_blocks", by_the_rule, 0},
    {"info_keys_say_which_partitions_share_a_lane", by_keys, 0},
    {"threads_send_segments_of_one_request_side_by_side", side_by_side, 0},
    {"two_threads_are_inside_the_MPI_at_once_on_two_lanes", at_once, 0},
    {"a_segment_whose_lane_is_taken_is_left_to_the_thread_that_has_it", left_to_the_other, 0},
    {0},
};
