/* Memory runs short inside the library while requests are started, made ready and waited for, in one of its allocations after
 * another. A call then fails, and says so, or the data arrives all the same; a start that was refused before anything of it was
 * sent may be tried again. Rank 0 sends to rank 1.
 *
 * failing_starts WHO: the rank whose library runs short. Prints "failed N" (requests of which a call failed), "retried N" (starts that
 * a second try began) and "delivered N" (starts whose data was right); ends with status 4.
 */
#include "short_memory.h"

enum { PARTITIONS = 12, INTS = 4000, STARTS = 15, STATUS_TAG = 999, BEGUN_TAG = 998, PATIENCE_S = 20, MAX = 60 };
enum { ENDED_WELL, FAILED };

static int rank, is_short, num_failed, num_retried, num_delivered;

static void give_up(const char *what, int kind, int allowed, int start) {
  printf("rank %d: %s (kind %d, allocation %d, start %d)\n", rank, what, kind, allowed, start);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

/* The other rank's status of its last start; waits for it if `waits`, otherwise -1 if it has not arrived. */
static int hear(int waits) {
  int there = 1, word;
  if (!waits) MPI_Iprobe(1 - rank, STATUS_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
  if (!there) return -1;
  MPI_Recv(&word, 1, MPI_INT, 1 - rank, STATUS_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return word;
}

/* The receiver is made when the sender has begun its first start, whose data is therefore sent from copies where it is announced. */
static void say_begun(int start) {
  if (rank == 0 && start == 0) MPI_Send(NULL, 0, MPI_BYTE, 1, BEGUN_TAG, MPI_COMM_WORLD);
}

/* A start on the side that has memory: it ends, or the other side says that it has failed. */
static int complete(MPI_Request *request, int kind, int allowed, int start) {
  const double begin_s = MPI_Wtime();
  int done = 0, word = -1;
  MPI_Start(request);
  say_begun(start);
  if (rank == 0) MPI_Pready_range(0, PARTITIONS - 1, *request);
  while (!done && word != FAILED) {
    if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) give_up("an error on the side that has memory", kind, allowed, start);
    if (word < 0) word = hear(0);
    if (MPI_Wtime() - begin_s > PATIENCE_S) give_up(word < 0 ? "both sides wait" : "this side waits, the other was content", kind, allowed, start);
  }
  return word < 0 ? hear(1) : word;
}

/* The same on the side that is short. */
static int complete_short(MPI_Request *request, int kind, int allowed, int start) {
  const int before = num_refused;
  int code = MPI_Start(request);
  if (code != MPI_SUCCESS) {
    const int kept = left;
    left = -1;
    if (num_refused == before && kept >= 0) give_up("an error without cause", kind, allowed, start);
    code = MPI_Start(request);
    num_retried += code == MPI_SUCCESS;
  }
  say_begun(start);
  if (code == MPI_SUCCESS && rank == 0) code = MPI_Pready_range(0, PARTITIONS - 1, *request);
  if (code == MPI_SUCCESS) code = MPI_Wait(request, MPI_STATUS_IGNORE);
  return code == MPI_SUCCESS ? ENDED_WELL : FAILED;
}

/* One request, which may fail at one of its starts. */
static void run(int kind, int allowed, MPI_Datatype type, int tag) {
  int *data = malloc(sizeof(int) * PARTITIONS * INTS); /* of this request alone: a failed transfer may still be in flight */
  MPI_Request request;
  int word = ENDED_WELL;
  if (rank == 0) MPI_Psend_init(data, PARTITIONS, INTS, type, 1, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  else MPI_Recv(NULL, 0, MPI_BYTE, 0, BEGUN_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Precv_init(data, PARTITIONS, INTS, type, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  left = is_short ? allowed : -1;
  for (int start = 0; start < STARTS && word == ENDED_WELL; start++) {
    for (int k = 0; k < PARTITIONS * INTS; k++) data[k] = rank == 0 ? 11 * k + start + 13 * allowed : -1;
    if (is_short) {
      word = complete_short(&request, kind, allowed, start);
      MPI_Send(&word, 1, MPI_INT, 1 - rank, STATUS_TAG, MPI_COMM_WORLD);
    } else {
      word = complete(&request, kind, allowed, start);
    }
    for (int k = 0; rank == 1 && word == ENDED_WELL && k < PARTITIONS * INTS; k++)
      if (data[k] != 11 * k + start + 13 * allowed) give_up("wrong data", kind, allowed, start);
    num_delivered += word == ENDED_WELL;
  }
  left = -1;
  if (word == ENDED_WELL) {
    MPI_Request_free(&request);
    free(data);
    return;
  }
  num_failed++;
  /* The two sides may no longer agree on the messages in flight, so no later start may succeed. */
  if (is_short && MPI_Start(&request) == MPI_SUCCESS) give_up("a start after one that has failed", kind, allowed, -1);
}

/* In a file, because a launcher may lose what a rank has said directly before it ends the job. */
static void report(const char *path) {
  FILE *file = fopen(path, "w");
  if (!file) MPI_Abort(MPI_COMM_WORLD, 3);
  fprintf(file, "failed %d\nretried %d\ndelivered %d\n", num_failed, num_retried, num_delivered);
  fclose(file);
}

int main(int argc, char **argv) {
  MPI_Datatype gapped;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  is_short = rank == atoi(argv[1]);
  find_library();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Type_create_resized(MPI_INT, 0, 4, &gapped); /* packed, all the same */
  MPI_Type_commit(&gapped);
  for (int kind = 0; kind < 4; kind++) {
    for (int allowed = 0, more = 1; more && allowed < MAX; allowed++) {
      const int before = num_refused;
      run(kind, allowed, kind / 2 ? gapped : MPI_INT, kind % 2 ? 30000 : 3); /* tags at hand, or announced */
      more = num_refused > before;
      MPI_Bcast(&more, 1, MPI_INT, atoi(argv[1]), MPI_COMM_WORLD);
    }
  }
  MPI_Type_free(&gapped);
  if (is_short) report(argv[2]);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  /* What was sent to a receive that has failed may never be received: MPI_Finalize could wait for it. */
  return MPI_Abort(MPI_COMM_WORLD, 4);
}
