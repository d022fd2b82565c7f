/* Times single messages and trains of them between one pair of ranks per level, in both directions. */
#include "partitioned/domain/calibrate.h"

#include <float.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/domain/domain.h"
#include "partitioned/node/direct_copy.h"
#include "partitioned/node/neighbours.h"
#include "partitioned/node/pool.h"
#include "partitioned/node/ring.h"
#include "partitioned/process/clock.h"
#include "partitioned/process/world.h"
#include "partitioned/segmentation/planner.h"

/* Dense where MPIs change from eager to rendezvous (between 4 KiB and 64 KiB), then the long messages. A train is as long as
 * transfers have segments of that size, because caches hold short transfers and not long ones: 1 MiB, or 16 MiB in at most 32. */
static const struct {
  int bytes, num; /* of a train */
} sizes[] = {{256, 8},   {512, 8},    {1024, 8},   {2048, 8},    {4096, 8},     {8192, 8},    {16384, 8},   {32768, 8},
             {65536, 8}, {131072, 8}, {262144, 4}, {524288, 32}, {1048576, 16}, {4194304, 4}, {16777216, 1}};
enum { NUM_SIZES = sizeof sizes / sizeof *sizes, MAX_TRAIN = 32, LONGEST = NUM_SIZES - 1 };
_Static_assert(sizeof sizes / sizeof *sizes <= EB_COST_MAX_PROTOCOLS, "a protocol for each size");

/* The bandwidth of long trains is the best of trains of these sizes. */
#define MIN_LONG_BYTES (256 * 1024)

/* No message is faster than the resolution of the clock. */
#define MIN_S 2e-8

/* A train is repeated until so many repeats in a row were not much faster than those before: the first 20 to 40 messages of a
 * size take Intel MPI 20 times as long in shared memory, and MPICH and Open MPI take twice as long for the first ten times that
 * 16 MiB are sent, whatever the messages. The median of the last ones counts, because a transfer takes that, and the least of long
 * ones, which are repeated less often, since MPI_Init should be short. */
enum { MAX_REPEATS = 128, SHORT_REPEATS = 12, LONG_REPEATS = 3, MIN_REPEATS = 3 };
#define SHORT_S 200e-6
#define CLEARLY_FASTER 0.9
#define MAX_REPEATING_S 50e-3

/* Up to this size all is measured again at the end, and the shorter time counts: another process, such as a launcher, may hold a
 * core for some milliseconds, in which all repeats of a short train fall. */
#define MAX_TWICE_BYTES (256 * 1024)
#define AGREEING 1.4
#define MAX_DISAGREEING 0.3

/* A train that takes longer, on a slow link, is shortened to a message, or not sent at all. */
#define LONGEST_TRAIN_S 6e-3
/* Where no later run uses the costs, every MPI_Init measures them, with trains of no more than this. */
#define QUICK_BYTES (1 << 20)

/* All sizes of a level together take about this long at most, also where ranks wait for a core: then trains are repeated less
 * often, and what is left when the time is over is not measured. Fewer sizes than those below 8 KiB say nothing of the bandwidth:
 * the costs then stay what they were. A size that was begun is ended, with the least repeats. */
#define THOROUGH_S 0.3
#define QUICK_S 0.03
/* The other paths within a node have no slow start. A segment takes at least this long on them, which a train does not show:
 * flags, and what the library does for a segment. */
#define OTHER_PATH_PART 0.3
#define OTHER_PATH_SEGMENT_S 0.1e-6
/* The second pass takes as much as so many of the last sizes, a node that is not idle included. */
enum { MIN_SIZES = 5, SECOND_PASS = 3, MAX_REPLIES = 4 };

enum { TAG_DATA = 1, TAG_REPLY = 2 };

typedef struct {
  MPI_Comm comm;
  int peer;
  char *memory;
  int max_bytes; /* of a train */
  eb_path path;
  /* Of another path: memory for each direction, and the last start in it. */
  eb_pool_block *block;
  eb_ring own_ring, others_ring;
  eb_direct own_direct, others_direct;
  uint64_t own_start, others_start;
  bool has_failed; /* something could not be copied */
  /* Of the first rank, which tells the other with every message that asks for a train; the other's are never. */
  double end_s;  /* when all is to be over */
  double stop_s; /* from when on the current size is not repeated */
} pair;

/* What both directions took, of as many sizes as were measured. */
typedef struct {
  int num, num_compared, num_disagreeing;
  bool is_whole; /* nothing was left out because the time was over */
  int num_of[NUM_SIZES]; /* messages of the train */
  double alone_s[NUM_SIZES], train_s[NUM_SIZES];
} measurement;

/* Copies what can be copied of a piece; true when all of it is done. */
static bool move_piece(pair *with, bool is_send, int piece, int bytes) {
  eb_direct direct = is_send ? with->own_direct : with->others_direct;
  const uint64_t start = is_send ? with->own_start : with->others_start;
  const eb_direct_part part = {start, piece, with->memory, (int64_t)piece * bytes, bytes};
  const int num_chunks = eb_direct_num_chunks(bytes);
  (void)eb_direct_copy(&direct, eb_neighbour(with->peer), &part, num_chunks);
  const eb_direct_state state = eb_direct_state_of(&direct, start, piece, num_chunks);
  with->has_failed = with->has_failed || state == EB_DIRECT_FAILED;
  return state != EB_DIRECT_OPEN;
}

/* Of a rank that looks at memory: its last reply may leave only in a call of the MPI. */
static void progress(const pair *with) {
  int flag;
  PMPI_Iprobe(with->peer, TAG_REPLY, with->comm, &flag, MPI_STATUS_IGNORE);
  sched_yield();
}

static void move_pieces(pair *with, bool is_send, int num, int bytes) {
  enum { LOOKS = 1024 };
  for (int m = 0, look = 1; m < num; look++) {
    if (move_piece(with, is_send, m, bytes)) m++;
    else if (look % LOOKS == 0) progress(with);
  }
}

static void send_directly(pair *with, int num, int bytes) {
  with->own_start++;
  for (int m = 0; m < num; m++) {
    eb_direct_make_ready(&with->own_direct, with->own_start, m, with->memory);
    if (!eb_direct_is_awaited(&with->own_direct, with->own_start)) (void)move_piece(with, true, m, bytes);
  }
  move_pieces(with, true, num, bytes);
}

static void send_pieces(pair *with, int num, int bytes) {
  MPI_Request requests[MAX_TRAIN];
  if (with->path == EB_PATH_DIRECT) {
    send_directly(with, num, bytes);
    return;
  }
  if (with->path == EB_PATH_RING) {
    eb_ring_open(&with->own_ring, ++with->own_start);
    for (int m = 0; m < num; m++)
      eb_ring_fill(&with->own_ring, with->own_start, m, (int64_t)m * bytes, with->memory + (size_t)m * (size_t)bytes, bytes);
    return;
  }
  for (int m = 0; m < num; m++)
    PMPI_Isend(with->memory + (size_t)m * (size_t)bytes, bytes, MPI_BYTE, with->peer, TAG_DATA, with->comm, &requests[m]);
  PMPI_Waitall(num, requests, MPI_STATUSES_IGNORE);
}

/* The receives are posted before the sender's clock starts, as they are in a partitioned transfer. */
static void post_pieces(pair *with, int num, int bytes, MPI_Request *requests) {
  if (with->path == EB_PATH_DIRECT) {
    eb_direct_open(&with->others_direct, ++with->others_start, with->memory);
    eb_direct_set_waiting(&with->others_direct, true);
  }
  for (int m = 0; m < num && with->path == EB_PATH_MESSAGE; m++)
    PMPI_Irecv(with->memory + (size_t)m * (size_t)bytes, bytes, MPI_BYTE, with->peer, TAG_DATA, with->comm, &requests[m]);
}

/* Copies a piece out of a ring, chunk by chunk as they come. */
static void take_piece(const pair *with, int piece, int bytes) {
  enum { LOOKS = 1024 };
  const int64_t first_byte = (int64_t)piece * bytes, chunk = eb_ring_chunk_bytes(bytes);
  const int num_chunks = eb_ring_num_chunks(bytes);
  for (int taken = 0, look = 1; taken < num_chunks; look++) {
    int num_filled = eb_ring_num_filled(&with->others_ring, with->others_start, piece, num_chunks);
    if (num_filled > num_chunks) num_filled = num_chunks;
    const int64_t begin = taken * chunk, end = num_filled == num_chunks ? bytes : num_filled * chunk;
    if (end > begin)
      memcpy(with->memory + first_byte + begin, eb_ring_at(&with->others_ring, with->others_start, first_byte + begin),
             (size_t)(end - begin));
    else if (look % LOOKS == 0) progress(with);
    if (num_filled > taken) taken = num_filled;
  }
}

static void receive_pieces(pair *with, int num, int bytes, MPI_Request *requests) {
  if (with->path == EB_PATH_MESSAGE) {
    PMPI_Waitall(num, requests, MPI_STATUSES_IGNORE);
    return;
  }
  if (with->path == EB_PATH_DIRECT) {
    move_pieces(with, false, num, bytes);
    eb_direct_set_waiting(&with->others_direct, false);
    return;
  }
  with->others_start++;
  for (int m = 0; m < num; m++) take_piece(with, m, bytes);
  eb_ring_consume(&with->others_ring, with->others_start);
}

/* Seconds from the first of `num` sends to the receiver's reply. */
static double send_trains(pair *with, int num, int bytes) {
  double times_s[MAX_REPEATS], least_s = DBL_MAX, gained_s = DBL_MAX; /* gained: the least when it last was much less */
  const double begin_s = eb_now_s();
  int first = 0, done = 0, is_late = 0;
  for (int more = 1; more;) {
    PMPI_Recv(&is_late, 1, MPI_INT, with->peer, TAG_REPLY, with->comm, MPI_STATUS_IGNORE);
    const double start_s = eb_now_s();
    send_pieces(with, num, bytes);
    PMPI_Recv(NULL, 0, MPI_BYTE, with->peer, TAG_REPLY, with->comm, MPI_STATUS_IGNORE);
    const double end_s = eb_now_s(), took_s = end_s - start_s;
    if (took_s < least_s) least_s = took_s;
    if (least_s < CLEARLY_FASTER * gained_s) {
      gained_s = least_s;
      first = done;
    }
    times_s[done++] = took_s;
    const int wanted = least_s < SHORT_S ? SHORT_REPEATS : LONG_REPEATS;
    const bool is_over = is_late || end_s > with->stop_s;
    more = done < MIN_REPEATS || (!is_over && done - first < wanted && done < MAX_REPEATS && end_s - begin_s < MAX_REPEATING_S);
    PMPI_Send(&more, 1, MPI_INT, with->peer, TAG_DATA, with->comm);
  }
  return least_s < SHORT_S && done - first >= MIN_REPEATS ? eb_planner_typical_s(times_s + first, done - first) : least_s;
}

static void receive_trains(pair *with, int num, int bytes) {
  MPI_Request requests[MAX_TRAIN];
  for (int more = 1; more;) {
    post_pieces(with, num, bytes, requests);
    const int is_late = eb_now_s() > with->stop_s;
    PMPI_Send(&is_late, 1, MPI_INT, with->peer, TAG_REPLY, with->comm);
    receive_pieces(with, num, bytes, requests);
    PMPI_Send(NULL, 0, MPI_BYTE, with->peer, TAG_REPLY, with->comm);
    PMPI_Recv(&more, 1, MPI_INT, with->peer, TAG_DATA, with->comm, MPI_STATUS_IGNORE);
  }
}

/* One direction, then the other: the first rank learns the mean of both. */
static double exchange_trains(pair *with, bool is_first, int num, int bytes) {
  double own_s, others_s = 0;
  if (!is_first) receive_trains(with, num, bytes);
  own_s = send_trains(with, num, bytes);
  if (is_first) {
    receive_trains(with, num, bytes);
    PMPI_Recv(&others_s, sizeof others_s, MPI_BYTE, with->peer, TAG_DATA, with->comm, MPI_STATUS_IGNORE);
  } else {
    PMPI_Send(&own_s, sizeof own_s, MPI_BYTE, with->peer, TAG_DATA, with->comm);
  }
  return (own_s + others_s) / 2;
}

/* Of a reply and what it answers, whichever path the trains take. */
static double exchange_replies(const pair *with, bool is_first) {
  pair by_message = *with;
  by_message.path = EB_PATH_MESSAGE;
  return exchange_trains(&by_message, is_first, 1, 0);
}

/* Both sides use the number of the first. */
static int agree(const pair *with, bool is_first, int number) {
  if (is_first) PMPI_Send(&number, 1, MPI_INT, with->peer, TAG_DATA, with->comm);
  else PMPI_Recv(&number, 1, MPI_INT, with->peer, TAG_DATA, with->comm, MPI_STATUS_IGNORE);
  return number;
}

static bool is_over(const pair *with) { return eb_now_s() > with->end_s; }

/* Lets the next one of `num` have its share of the time that is left. */
static void share_time(pair *with, int num) {
  const double now_s = eb_now_s();
  with->stop_s = now_s + (with->end_s - now_s) / num;
}

/* How many messages a train of the next size has, 0: the size is left out. */
static int next_num(const pair *with, const measurement *made) {
  const int s = made->num;
  if (s == NUM_SIZES || sizes[s].bytes > with->max_bytes || is_over(with)) return 0;
  const double expected_s = s ? made->alone_s[s - 1] * sizes[s].bytes / sizes[s - 1].bytes : 0;
  if (expected_s > LONGEST_TRAIN_S) return 0;
  return sizes[s].bytes <= with->max_bytes / sizes[s].num && expected_s * sizes[s].num <= LONGEST_TRAIN_S ? sizes[s].num : 1;
}

static void measure_size(pair *with, bool is_first, int s, measurement *made) {
  /* The train first: it passes the slow start of a size sooner. */
  const double train_s = made->num_of[s] > 1 ? exchange_trains(with, is_first, made->num_of[s], sizes[s].bytes) : 0;
  const double alone_s = exchange_trains(with, is_first, 1, sizes[s].bytes);
  if (made->alone_s[s] > 0) {
    const double ratio = alone_s / made->alone_s[s];
    made->num_compared++;
    made->num_disagreeing += ratio > AGREEING || ratio < 1 / AGREEING;
  }
  if (made->alone_s[s] == 0 || train_s < made->train_s[s]) made->train_s[s] = train_s;
  if (made->alone_s[s] == 0 || alone_s < made->alone_s[s]) made->alone_s[s] = alone_s;
}

static bool has_long_reply(const measurement *made, double reply_s) { return made->num > 0 && made->alone_s[0] <= reply_s / 2; }

/* The result counts on the first rank. */
static void measure_sizes(pair *with, bool is_first, double limit_s, measurement *made) {
  int num = 0;
  while (sizes[num].bytes <= with->max_bytes && ++num < NUM_SIZES) continue;
  if (is_first) with->stop_s = eb_now_s() + limit_s / 4;
  (void)exchange_trains(with, is_first, sizes[0].num, sizes[0].bytes); /* establishes connections */
  if (is_first) with->end_s = eb_now_s() + limit_s;
  share_time(with, num);
  double reply_s = exchange_replies(with, is_first);
  made->is_whole = true;
  for (int train; (train = agree(with, is_first, next_num(with, made))) > 0; made->num++) {
    share_time(with, num - made->num + SECOND_PASS);
    made->num_of[made->num] = train;
    measure_size(with, is_first, made->num, made);
  }
  with->stop_s = with->end_s;
  for (int s = 0; s < made->num && sizes[s].bytes <= MAX_TWICE_BYTES && made->is_whole; s++) {
    made->is_whole = agree(with, is_first, !is_over(with));
    if (made->is_whole) measure_size(with, is_first, s, made);
  }
  /* Each time includes a reply. Where none was so short, replies waited for a core, and are measured once more. */
  for (int k = 0; agree(with, is_first, k == 0 || (k < MAX_REPLIES && has_long_reply(made, reply_s))); k++) {
    const double again_s = exchange_replies(with, is_first);
    if (again_s < reply_s) reply_s = again_s;
  }
  if (has_long_reply(made, reply_s)) made->num = 0;
  for (int s = 0; s < made->num; s++) {
    made->alone_s[s] -= reply_s / 2;
    made->train_s[s] -= reply_s / 2;
  }
}

/* A longer message never takes less; of two times that contradict each other the lower one is right, because noise adds. */
static void make_monotonic(double *times_s, int num) {
  for (int s = num - 1; s >= 0; s--) {
    if (s + 1 < num && times_s[s] > times_s[s + 1]) times_s[s] = times_s[s + 1];
    if (times_s[s] < MIN_S) times_s[s] = MIN_S;
  }
}

/* Straight lines between the measured sizes; beyond the last one, the bandwidth of long trains. The overhead is what each
 * further message of a train adds beyond its bytes at that bandwidth: exactly what the planner adds. */
static void to_cost(measurement *made, double least_s, eb_cost *cost) {
  const int num = made->num;
  double further_s[NUM_SIZES];
  make_monotonic(made->alone_s, num);
  for (int s = 0; s < num; s++)
    further_s[s] = made->num_of[s] > 1 ? (made->train_s[s] - made->alone_s[s]) / (made->num_of[s] - 1) : made->alone_s[s];
  make_monotonic(further_s, num);
  double second_per_byte = made->alone_s[num - 1] / sizes[num - 1].bytes;
  for (int s = 0; s < num; s++)
    if (sizes[s].bytes >= MIN_LONG_BYTES && further_s[s] < second_per_byte * sizes[s].bytes)
      second_per_byte = further_s[s] / sizes[s].bytes;
  cost->num = num;
  for (int s = 0; s < num; s++) {
    const double alone_s = made->alone_s[s], rise_s = s + 1 < num ? made->alone_s[s + 1] - alone_s : 0;
    const double bandwidth = s + 1 == num     ? 1 / second_per_byte
                             : rise_s > 1e-12 ? (sizes[s + 1].bytes - sizes[s].bytes) / rise_s
                                              : sizes[s + 1].bytes / 1e-12; /* equal times */
    const double at_full_s = sizes[s].bytes * second_per_byte;
    /* A link may carry a few KiB faster. */
    const double more_s = further_s[s] - (at_full_s < alone_s ? at_full_s : alone_s);
    cost->protocols[s] = (eb_protocol){s ? sizes[s].bytes : 0, alone_s - sizes[s].bytes / bandwidth,
                                       more_s > least_s ? more_s : least_s, bandwidth};
  }
}

/* The longest train that the ring has room for; 0: there is none. */
static int longest_by_ring(void) {
  int longest = 0;
  for (int s = 0; s < NUM_SIZES && eb_pool_may_have_both(eb_ring_bytes(sizes[s].bytes)); s++) longest = sizes[s].bytes;
  return longest;
}

static int longest_by(eb_path path, bool is_thorough) {
  if (path == EB_PATH_RING) return longest_by_ring();
  if (path == EB_PATH_DIRECT && !(eb_neighbours_are_reached() && eb_pool_may_have_both(sizeof(eb_direct_memory)))) return 0;
  return is_thorough ? sizes[LONGEST].bytes : QUICK_BYTES;
}

/* Exchanges where the memory of each direction is; both sides have it or none. */
static bool begin_memory(pair *with) {
  const bool is_ring = with->path == EB_PATH_RING;
  const int64_t num_bytes = is_ring ? eb_ring_bytes(with->max_bytes) : (int64_t)sizeof(eb_direct_memory);
  int64_t own_offset = -1, others_offset = -1;
  if (with->max_bytes > 0) with->block = eb_pool_take(with->peer, num_bytes);
  if (with->block) {
    own_offset = eb_pool_offset(with->block);
    if (is_ring) eb_ring_format(eb_pool_at(own_offset, num_bytes));
    else eb_direct_format(eb_pool_at(own_offset, num_bytes));
  }
  PMPI_Sendrecv(&own_offset, sizeof own_offset, MPI_BYTE, with->peer, TAG_DATA, &others_offset, sizeof others_offset, MPI_BYTE,
                with->peer, TAG_DATA, with->comm, MPI_STATUS_IGNORE);
  void *const own = eb_pool_at(own_offset, num_bytes), *const others = eb_pool_at(others_offset, num_bytes);
  if (!own || !others) {
    if (with->block) eb_pool_return(with->block);
    return false;
  }
  if (is_ring) {
    eb_ring_begin(&with->own_ring, own, with->max_bytes);
    eb_ring_begin(&with->others_ring, others, with->max_bytes);
    eb_pool_touch(others, num_bytes); /* by the receiver first */
  } else {
    eb_direct_begin(&with->own_direct, own, true);
    eb_direct_begin(&with->others_direct, others, false);
  }
  return true;
}

static void end_memory(pair *with) {
  if (with->path == EB_PATH_RING) eb_ring_leave(&with->others_ring);
  else eb_direct_leave(&with->others_direct);
  eb_pool_leave(with->block);
}

static void measure(int peer, bool is_first, eb_path path, bool is_thorough, eb_calibration *calibration) {
  const bool is_message = path == EB_PATH_MESSAGE;
  const int max_bytes = longest_by(path, is_thorough);
  const size_t num_bytes = (size_t)max_bytes;
  pair with = {.comm = eb_domain.comm, .peer = peer, .max_bytes = max_bytes, .path = path, .end_s = DBL_MAX, .stop_s = DBL_MAX};
  measurement made = {0};
  const bool has_memory = !is_message && begin_memory(&with);
  with.memory = malloc(num_bytes + 1);
  int is_able = with.memory != NULL && has_memory != is_message, is_peer_able = 0;
  PMPI_Sendrecv(&is_able, 1, MPI_INT, peer, TAG_DATA, &is_peer_able, 1, MPI_INT, peer, TAG_DATA, with.comm, MPI_STATUS_IGNORE);
  if (is_able && is_peer_able) {
    memset(with.memory, 1, num_bytes); /* touched first */
    measure_sizes(&with, is_first, (is_thorough ? THOROUGH_S : QUICK_S) * (is_message ? 1 : OTHER_PATH_PART), &made);
  }
  if (has_memory) end_memory(&with);
  free(with.memory);
  if (!is_first || made.num < MIN_SIZES || with.has_failed) return; /* what is not copied takes no time */
  to_cost(&made, is_message ? MIN_S : OTHER_PATH_SEGMENT_S, &calibration->cost);
  calibration->is_steady = made.is_whole && made.num_disagreeing <= MAX_DISAGREEING * made.num_compared;
}

/* Rank 0 and its lowest neighbour, or, where it has none, the lowest two of which the lower one has. False where every rank is
 * alone on its node. */
static bool find_neighbours(eb_pair *pair) {
  /* A rank that has a neighbour above it offers itself. */
  int neighbour = eb_domain.rank + 1;
  while (neighbour < eb_domain.size && !eb_domain.is_near[neighbour]) neighbour++;
  int offered = neighbour < eb_domain.size ? eb_domain.rank : eb_domain.size, lowest = eb_domain.size;
  if (PMPI_Allreduce(&offered, &lowest, 1, MPI_INT, MPI_MIN, eb_domain.comm) != MPI_SUCCESS) return false;
  if (lowest == eb_domain.size) return false;
  *pair = (eb_pair){lowest, neighbour};
  return PMPI_Bcast(pair, sizeof *pair, MPI_BYTE, lowest, eb_domain.comm) == MPI_SUCCESS;
}

bool eb_calibrate_pair(bool is_inter_node, eb_pair *pair) {
  *pair = (eb_pair){0, eb_domain.far_rank};
  return is_inter_node ? pair->second < eb_domain.size : find_neighbours(pair);
}

void eb_calibrate(const eb_pair *pair, eb_path path, bool is_thorough, eb_calibration *calibration) {
  *calibration = (eb_calibration){.is_steady = false};
  if (eb_domain.rank == pair->first) measure(pair->second, true, path, is_thorough, calibration);
  if (eb_domain.rank == pair->second) measure(pair->first, false, path, is_thorough, calibration);
  PMPI_Bcast(calibration, sizeof *calibration, MPI_BYTE, pair->first, eb_domain.comm);
}
