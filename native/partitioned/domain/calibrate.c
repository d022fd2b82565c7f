/* Times single messages and trains of them between one pair of ranks per level. */
#include "partitioned/domain/calibrate.h"

#include <float.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/domain/domain.h"
#include "partitioned/process/clock.h"
#include "partitioned/process/world.h"

/* Dense where MPIs change from eager to rendezvous (between 4 KiB and 64 KiB), then the long messages. */
static const int sizes[] = {256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 262144, 1048576};
enum { NUM_SIZES = sizeof sizes / sizeof *sizes, TRAIN = 8, LONGEST_TRAIN = 65536 };

/* No message is faster than the resolution of the clock. */
#define MIN_S 2e-8

/* A size is repeated until so many repeats in a row were not much faster than those before. Costs need not be exact, because
 * they only say what is worth a try; MPI_Init should be short. A slow link need not take longer than the budget. */
enum { MIN_REPEATS = 5, REPEATS_WITHOUT_GAIN = 12 };
#define CLEARLY_FASTER 0.8
#define INTRA_NODE_BUDGET_S 20e-3
#define INTER_NODE_BUDGET_S 1e-3

enum { TAG_DATA = 1, TAG_REPLY = 2 };

typedef struct {
  MPI_Comm comm;
  int peer;
  bool is_sender;
  double budget_s; /* for each size */
} pair;

/* Seconds from the first of `num` sends to the receiver's reply, the least of all repeats, because whatever else runs
 * on the machine only adds; the receiver returns 0. Both sides do as many repeats as the sender's clock allows: its
 * reply to the reply states whether to continue. */
static double train_s(const pair *with, char *memory, int num, int bytes) {
  MPI_Request requests[TRAIN];
  const double begin_s = eb_now_s();
  double least_s = DBL_MAX, gained_s = DBL_MAX; /* the least, and what it was when it last was much less than before */
  int gained_at = 0;
  for (int done = 1, more = 1; more; done++) {
    if (!with->is_sender)
      for (int m = 0; m < num; m++)
        PMPI_Irecv(memory + (size_t)m * (size_t)bytes, bytes, MPI_BYTE, with->peer, TAG_DATA, with->comm, &requests[m]);
    /* The receives are posted before the clock starts, as they are in a partitioned transfer. */
    if (!with->is_sender) PMPI_Send(NULL, 0, MPI_BYTE, with->peer, TAG_REPLY, with->comm);
    else PMPI_Recv(NULL, 0, MPI_BYTE, with->peer, TAG_REPLY, with->comm, MPI_STATUS_IGNORE);
    const double start_s = eb_now_s();
    if (with->is_sender) {
      for (int m = 0; m < num; m++)
        PMPI_Isend(memory + (size_t)m * (size_t)bytes, bytes, MPI_BYTE, with->peer, TAG_DATA, with->comm, &requests[m]);
      PMPI_Waitall(num, requests, MPI_STATUSES_IGNORE);
      PMPI_Recv(NULL, 0, MPI_BYTE, with->peer, TAG_REPLY, with->comm, MPI_STATUS_IGNORE);
      const double took_s = eb_now_s() - start_s;
      if (took_s < least_s) least_s = took_s;
      if (least_s < CLEARLY_FASTER * gained_s) {
        gained_s = least_s;
        gained_at = done;
      }
      more = done < MIN_REPEATS || (done < gained_at + REPEATS_WITHOUT_GAIN && eb_now_s() - begin_s < with->budget_s);
      PMPI_Send(&more, 1, MPI_INT, with->peer, TAG_DATA, with->comm);
    } else {
      PMPI_Waitall(num, requests, MPI_STATUSES_IGNORE);
      PMPI_Send(NULL, 0, MPI_BYTE, with->peer, TAG_REPLY, with->comm);
      PMPI_Recv(&more, 1, MPI_INT, with->peer, TAG_DATA, with->comm, MPI_STATUS_IGNORE);
    }
  }
  return with->is_sender ? least_s : 0;
}

/* Straight lines between the measured sizes. Beyond the last one, the bandwidth of the last: the slope between two
 * long messages is a difference of large numbers, and the proposed segmentations depend on it. */
static void to_cost(const double *one_s, const double *overhead_s, eb_cost *cost) {
  cost->num = NUM_SIZES;
  for (int s = 0; s < NUM_SIZES; s++) {
    const int b = s + 1;
    /* Noise may make a slope vanish: a longer message never takes less. */
    const double rise_s = b < NUM_SIZES ? one_s[b] - one_s[s] : 0;
    const double bandwidth = rise_s > 1e-12  ? (sizes[b] - sizes[s]) / rise_s
                             : b < NUM_SIZES ? sizes[b] / 1e-12
                                             : sizes[s] / one_s[s];
    cost->protocols[s] = (eb_protocol){s ? sizes[s] : 0, one_s[s] - sizes[s] / bandwidth, overhead_s[s], bandwidth};
  }
}

static void measure(const pair *with, eb_cost *cost) {
  const size_t num_bytes = TRAIN * LONGEST_TRAIN > sizes[NUM_SIZES - 1] ? TRAIN * LONGEST_TRAIN : sizes[NUM_SIZES - 1];
  char *memory = malloc(num_bytes);
  double one_s[NUM_SIZES], train[NUM_SIZES], overhead_s[NUM_SIZES];
  if (!memory) eb_abort(EB_NO_MEMORY);
  /* Touch the memory first, and establish connections. */
  memset(memory, 1, num_bytes);
  (void)train_s(with, memory, TRAIN, sizes[0]);
  const double reply_s = train_s(with, memory, 1, 0) / 2;
  for (int s = 0; s < NUM_SIZES; s++) {
    /* Trains first: the first 20 to 40 messages of a size take Intel MPI 20 times as long in shared memory. */
    if (sizes[s] <= LONGEST_TRAIN) train[s] = train_s(with, memory, TRAIN, sizes[s]) - reply_s;
    one_s[s] = train_s(with, memory, 1, sizes[s]) - reply_s;
  }
  free(memory);
  if (!with->is_sender) return;
  for (int s = NUM_SIZES - 1; s >= 0; s--) {
    /* Noise only adds, so of two times that contradict each other the lower one is right. */
    if (s + 1 < NUM_SIZES && one_s[s] > one_s[s + 1]) one_s[s] = one_s[s + 1];
    if (one_s[s] < MIN_S) one_s[s] = MIN_S;
  }
  for (int s = 0; s < NUM_SIZES; s++) {
    overhead_s[s] = s ? overhead_s[s - 1] : 0;
    if (sizes[s] > LONGEST_TRAIN) continue;
    /* What each further message of a train adds beyond its bytes at full bandwidth: exactly what the planner adds. */
    const double at_full_s = sizes[s] * one_s[NUM_SIZES - 1] / sizes[NUM_SIZES - 1];
    const double bytes_s = at_full_s < one_s[s] ? at_full_s : one_s[s]; /* a link may carry a few KiB faster */
    const double more_s = (train[s] - one_s[s]) / (TRAIN - 1) - bytes_s;
    overhead_s[s] = more_s > MIN_S ? more_s : MIN_S;
  }
  to_cost(one_s, overhead_s, cost);
}

/* Two ranks of one node, the same on every rank: rank 0 and its lowest neighbour, or, where it has none, the lowest two of
 * which the lower one has. False where every rank is alone. */
static bool find_neighbours(int *first, int *second) {
  /* A rank that has a neighbour above it offers itself. */
  int neighbour = eb_domain.rank + 1, pair[2];
  while (neighbour < eb_domain.size && !eb_domain.is_near[neighbour]) neighbour++;
  int offered = neighbour < eb_domain.size ? eb_domain.rank : eb_domain.size, lowest = eb_domain.size;
  if (PMPI_Allreduce(&offered, &lowest, 1, MPI_INT, MPI_MIN, eb_domain.comm) != MPI_SUCCESS) return false;
  if (lowest == eb_domain.size) return false;
  pair[0] = lowest, pair[1] = neighbour;
  if (PMPI_Bcast(pair, 2, MPI_INT, lowest, eb_domain.comm) != MPI_SUCCESS) return false;
  *first = pair[0];
  *second = pair[1];
  return true;
}

static void calibrate(int first, int second, double budget_s, eb_cost *cost) {
  if (eb_domain.rank == first) measure(&(pair){eb_domain.comm, second, true, budget_s}, cost);
  if (eb_domain.rank == second) measure(&(pair){eb_domain.comm, first, false, budget_s}, cost);
  PMPI_Bcast(cost, sizeof *cost, MPI_BYTE, first, eb_domain.comm);
}

void eb_calibrate(eb_cost *intra_node, eb_cost *inter_node) {
  int first, second;
  if (intra_node->num == 0 && find_neighbours(&first, &second)) calibrate(first, second, INTRA_NODE_BUDGET_S, intra_node);
  const int far_rank = eb_domain.far_rank;
  if (inter_node->num == 0 && far_rank < eb_domain.size) calibrate(0, far_rank, INTER_NODE_BUDGET_S, inter_node);
}
