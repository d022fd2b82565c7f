/* Lanes: the requests of a communicator are spread over as many communicators of ours as EARLYBIRD_LANES says. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "case.h"

enum { NUM_CHANNELS = 16, MAX_SEEN = 64, PARTITIONS = 4, PARTITION_BYTES = 1000 };

/* Where libearlybird sends data: messages of a partition or more, up to a few bytes. What else it sends is much shorter. */
static MPI_Comm seen[MAX_SEEN];
static int num_seen;

void note_sent(int count, MPI_Comm comm) {
  if (count < PARTITION_BYTES / 2) return;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  int at = 0;
  while (at < num_seen && seen[at] != comm) at++;
  if (at == num_seen && num_seen < MAX_SEEN) seen[num_seen++] = comm;
  pthread_mutex_unlock(&lock);
}

/* The first call is the library's, for its second lane in MPI_Init: EARLYBIRD_TESTS_LACKING_LANE lets it fail on rank 0, and
 * the other ranks must do without theirs, too. */
int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm *made) {
  static atomic_bool was_called; /* threads duplicate communicators side by side */
  int (*const own)(MPI_Comm, MPI_Comm *) = (int (*)(MPI_Comm, MPI_Comm *))dlsym(RTLD_NEXT, "PMPI_Comm_dup");
  const bool is_first = !atomic_exchange(&was_called, true);
  int rank = 0;
  const int code = own(comm, made);
  if (code != MPI_SUCCESS || !is_first || !environment_number("EARLYBIRD_TESTS_LACKING_LANE", 0)) return code;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank > 0) return code;
  PMPI_Comm_free(made);
  return MPI_ERR_OTHER;
}

/* Requests of one tag, canonical ones and others, all of them in flight at once. */
static void spread(const struct context *context, int tag) {
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  struct side sends[NUM_CHANNELS], receives[NUM_CHANNELS];
  MPI_Request requests[2 * NUM_CHANNELS];
  num_seen = 0;
  for (int c = 0; c < NUM_CHANNELS; c++) {
    side_send_init(&sends[c], (struct shape){PARTITIONS, PARTITION_BYTES, MPI_BYTE}, next, tag, context->world);
    side_recv_init(&receives[c], (struct shape){PARTITIONS / 2, 2 * PARTITION_BYTES, MPI_BYTE}, before, tag, context->world);
  }
  for (uint64_t i = 0; i < 4; i++) {
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
  const long num_lanes = environment_number("EARLYBIRD_TESTS_LACKING_LANE", 0) ? 1 : environment_number("EARLYBIRD_LANES", 1);
  EXPECT(num_seen == num_lanes, "requests of tag %d went to %d communicators, and there are %ld lanes", tag, num_seen, num_lanes);
  for (int c = 0; c < NUM_CHANNELS; c++) {
    side_destroy(&sends[c]);
    side_destroy(&receives[c]);
  }
}

static void every_lane(const struct context *context) {
  spread(context, 4);
  spread(context, 30004);
}

const struct test_case lane_cases[] = {
    {"requests_of_one_tag_use_every_lane", every_lane, 0},
    {0},
};
