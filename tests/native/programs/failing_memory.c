/* Memory runs short inside the library, in one of its allocations after another: a request is then not made, or not started,
 * with MPI_ERR_NO_MEM (or an error of the MPI), and can be made once there is memory again. Rank 0 sends to rank 1.
 *
 * failing_memory WHO: the rank whose library runs short. Prints "failed N" (allocations that were refused) and "delivered M".
 */
#include "short_memory.h"

enum { PARTITIONS = 16, INTS = 3000, STARTS = 12 };
static int data[PARTITIONS * INTS];

/* Tries to make a request, first with too little memory; returns whether that was refused. */
static int make(MPI_Comm comm, MPI_Datatype type, int rank, int tag, int allowed, MPI_Request *request) {
  const int before = num_refused;
  for (int try = 0;; try++) {
    left = try == 0 ? allowed : -1;
    const int code = rank == 0 ? MPI_Psend_init(data, PARTITIONS, INTS, type, 1, tag, comm, MPI_INFO_NULL, request)
                               : MPI_Precv_init(data, PARTITIONS, INTS, type, 0, tag, comm, MPI_INFO_NULL, request);
    left = -1;
    if (code == MPI_SUCCESS) return num_refused > before;
    if (try > 0 || num_refused == before) {
      printf("rank %d: an error without cause: %d\n", rank, code);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
  }
}

int main(int argc, char **argv) {
  int rank, delivered = 0, num_failed = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int is_short = rank == atoi(argv[1]);
  find_library();
  MPI_Datatype gapped;
  MPI_Comm duplicate;
  MPI_Type_create_resized(MPI_INT, 0, 4, &gapped); /* packed, all the same */
  MPI_Type_commit(&gapped);
  MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(duplicate, MPI_ERRORS_RETURN);
  for (int kind = 0; kind < 4; kind++) {
    const MPI_Comm comm = kind % 2 ? duplicate : MPI_COMM_WORLD;
    const MPI_Datatype type = kind / 2 ? gapped : MPI_INT;
    for (int allowed = 0, more = 1; more; allowed++) {
      MPI_Request request;
      more = make(comm, type, rank, 5, is_short ? allowed : -1, &request) && allowed < 40;
      num_failed += more;
      for (int start = 0; start < STARTS; start++) {
        for (int k = 0; k < PARTITIONS * INTS; k++) data[k] = rank == 0 ? 11 * k + start + allowed : -1;
        MPI_Start(&request);
        if (rank == 0) MPI_Pready_range(0, PARTITIONS - 1, request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int k = 0; k < PARTITIONS * INTS; k++) {
          if (rank == 0 || data[k] == 11 * k + start + allowed) continue;
          printf("rank %d: item %d of start %d of kind %d is %d\n", rank, k, start, kind, data[k]);
          return MPI_Abort(MPI_COMM_WORLD, 3);
        }
        delivered += rank;
      }
      MPI_Request_free(&request);
      /* Whoever runs short decides how often. */
      MPI_Bcast(&more, 1, MPI_INT, atoi(argv[1]), MPI_COMM_WORLD);
    }
  }
  MPI_Type_free(&gapped);
  MPI_Comm_free(&duplicate);
  if (is_short) printf("failed %d\n", num_failed);
  if (rank == 1) printf("delivered %d\n", delivered);
  MPI_Finalize();
  return 0;
}
