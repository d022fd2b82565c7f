/* Memory runs short inside the library in one rank, in its N-th allocation (from 0) in a part of the program; all that may come of it
 * is that nothing does, that every rank does without the library, or that the job ends and says why.
 *
 * failing_anywhere WHO N PART: PART is init (MPI_Init), meeting (what of it comes after the MPI's own), communicators (constructors) or
 * finalize. Prints "refused" where there was such an allocation; rank 1 prints "delivered" when the transfers of rank 0 to it were
 * right.
 */
#include "short_memory.h"

enum { PARTITIONS = 8, INTS = 4000 };

/* Three starts of one request from rank 0 to rank 1. */
static void transfer(MPI_Comm comm, int seed) {
  static int data[PARTITIONS * INTS];
  int rank;
  MPI_Request request;
  MPI_Comm_rank(comm, &rank);
  if (rank > 1) return;
  if (rank == 0) MPI_Psend_init(data, PARTITIONS, INTS, MPI_INT, 1, 5, comm, MPI_INFO_NULL, &request);
  else MPI_Precv_init(data, PARTITIONS, INTS, MPI_INT, 0, 5, comm, MPI_INFO_NULL, &request);
  for (int start = 0; start < 3; start++) {
    for (int k = 0; k < PARTITIONS * INTS; k++) data[k] = rank == 0 ? 7 * k + start + seed : -1;
    MPI_Start(&request);
    if (rank == 0) MPI_Pready_range(0, PARTITIONS - 1, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; rank == 1 && k < PARTITIONS * INTS; k++) {
      if (data[k] == 7 * k + start + seed) continue;
      printf("item %d of start %d is wrong: %d\n", k, start, data[k]);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
  }
  MPI_Request_free(&request);
}

/* One of every kind of constructor. */
enum { NUM_MADE = 5 };
static void construct(MPI_Comm made[NUM_MADE]) {
  MPI_Group world;
  int rank;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &made[0]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &made[1]);
  MPI_Comm_create_group(MPI_COMM_WORLD, world, 17, &made[2]);
  MPI_Comm_create_group(MPI_COMM_WORLD, world, 17, &made[3]);
  MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 18, &made[4]);
  MPI_Group_free(&world);
}

/* The library's references are resolved here first. It calls this when the MPI has been initialised, before it meets the other ranks. */
static int allowed_in_meeting = -1;
__attribute__((visibility("default"))) int PMPI_Query_thread(int *level) {
  int (*next)(int *) = (int (*)(int *))dlsym(RTLD_NEXT, "PMPI_Query_thread");
  if (allowed_in_meeting >= 0) left = allowed_in_meeting;
  allowed_in_meeting = -1;
  return next(level);
}

int main(int argc, char **argv) {
  const char *rank_of[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"}, *rank_text = NULL;
  for (int v = 0; v < 3 && !rank_text; v++) rank_text = getenv(rank_of[v]);
  const int rank = atoi(rank_text), is_short = rank == atoi(argv[1]), allowed = is_short ? atoi(argv[2]) : -1;
  const char *part = argv[3];
  MPI_Comm made[NUM_MADE];
  find_library();
  says_refusals = 1;
  if (strcmp(part, "init") == 0) left = allowed;
  if (strcmp(part, "meeting") == 0) allowed_in_meeting = allowed;
  MPI_Init(&argc, &argv);
  left = -1;
  if (strcmp(part, "communicators") == 0) left = allowed;
  construct(made);
  left = -1;
  transfer(MPI_COMM_WORLD, 1);
  for (int m = 0; m < NUM_MADE - 1; m++) transfer(made[m], 2 + m);
  if (rank == 1) puts("delivered");
  fflush(stdout);
  for (int m = 0; m < NUM_MADE; m++) MPI_Comm_free(&made[m]);
  if (strcmp(part, "finalize") == 0) left = allowed;
  MPI_Finalize();
  left = -1;
  return 0;
}
