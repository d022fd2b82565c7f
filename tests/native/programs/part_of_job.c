/* A job of which only some ranks have the library: every rank takes part in the program's collectives and constructors, and
 * pairs of ranks transfer partitions on what these make.
 *
 * part_of_job FIRST,SECOND[,FIRST,SECOND...]: the pairs, of which the first sends. Prints "delivered N" on every rank, where
 * N counts the transfers that it received. Built with OWN_INIT it brings its own MPI_Init, with PMPI it calls PMPI_Init,
 * with SESSION it has a session open before.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTITIONS = 8, INTS = 512, STARTS = 4, TAG = 3 };

static int rank, size, num_received;
static int data[PARTITIONS * INTS];

#ifdef OWN_INIT
int MPI_Init(int *argc, char ***argv) { return PMPI_Init(argc, argv); }
#endif

static void require(int holds, const char *what) {
  if (holds) return;
  printf("rank %d: wrong: %s\n", rank, what);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void transfer(MPI_Comm comm, int first, int second, int salt, int sends) {
  MPI_Request request;
  if (sends) MPI_Psend_init(data, PARTITIONS, INTS, MPI_INT, second, TAG, comm, MPI_INFO_NULL, &request);
  else MPI_Precv_init(data, PARTITIONS, INTS, MPI_INT, first, TAG, comm, MPI_INFO_NULL, &request);
  for (int start = 0; start < STARTS; start++) {
    for (int k = 0; k < PARTITIONS * INTS; k++) data[k] = sends ? 7 * k + 1000 * salt + start : -1;
    MPI_Start(&request);
    for (int p = PARTITIONS - 1; sends && p >= 0; p--) MPI_Pready(p, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; !sends && k < PARTITIONS * INTS; k++) require(data[k] == 7 * k + 1000 * salt + start, "partitioned data");
  }
  MPI_Request_free(&request);
  num_received += !sends;
}

/* The ranks of the pair in a communicator, MPI_UNDEFINED for one that is not in it. */
static void translate(MPI_Comm comm, const int pair[2], int found[2]) {
  MPI_Group world, group;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Comm_group(comm, &group);
  MPI_Group_translate_ranks(world, 2, pair, group, found);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
}

static void transfer_on(MPI_Comm comm, const int *pairs, int num_pairs, int salt) {
  for (int p = 0; comm != MPI_COMM_NULL && p < num_pairs; p++) {
    int found[2];
    const int *pair = pairs + 2 * p;
    translate(comm, pair, found);
    if (found[0] == MPI_UNDEFINED || found[1] == MPI_UNDEFINED) continue;
    if (rank == pair[0]) transfer(comm, found[0], found[1], salt, 1);
    if (rank == pair[1]) transfer(comm, found[0], found[1], salt, 0);
  }
}

static void expect_sum(MPI_Comm comm) {
  int one = 1, sum = 0, num;
  MPI_Comm_size(comm, &num);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  require(sum == num, "sum of an MPI_Allreduce");
}

static const int *finalize_pairs;
static int num_finalize_pairs;

/* Called by MPI_Finalize: MPI is still usable (MPI 4.1 section 11.2.4). */
static int transfer_in_finalize(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)comm, (void)keyval, (void)value, (void)extra;
  transfer_on(MPI_COMM_WORLD, finalize_pairs, num_finalize_pairs, 99);
  printf("delivered %d\n", num_received);
  fflush(stdout);
  return MPI_SUCCESS;
}

int main(int argc, char **argv) {
  int pairs[32], num = 0, keyval;
#ifdef SESSION
  MPI_Session session;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
#endif
#ifdef PMPI
  PMPI_Init(&argc, &argv);
#else
  MPI_Init(&argc, &argv);
#endif
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (char *word = argc > 1 ? strtok(argv[1], ",") : NULL; word && num < 32; word = strtok(NULL, ",")) pairs[num++] = atoi(word);
  num /= 2;
  /* The first collective of all: a rank without the library must not meet one of the library's own here. */
  expect_sum(MPI_COMM_WORLD);

  MPI_Comm duplicate, half, cart, pair_comm = MPI_COMM_NULL, sub;
  const int dims[1] = {size}, periods[1] = {1}, keep[1] = {1};
  MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
  MPI_Comm_split(duplicate, rank % 2, -rank, &half);
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &cart);
  MPI_Cart_sub(cart, keep, &sub);
  /* By the ranks of the group alone. */
  MPI_Group world, group;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int p = 0; p < num; p++) {
    if (rank != pairs[2 * p] && rank != pairs[2 * p + 1]) continue;
    MPI_Group_incl(world, 2, pairs + 2 * p, &group);
    if (pair_comm != MPI_COMM_NULL) MPI_Comm_free(&pair_comm);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, p, &pair_comm);
    MPI_Group_free(&group);
    transfer_on(pair_comm, pairs + 2 * p, 1, 50 + p);
  }
  MPI_Group_free(&world);
  const MPI_Comm comms[] = {MPI_COMM_WORLD, duplicate, half, cart, sub};
  for (int c = 0; c < 5; c++) {
    transfer_on(comms[c], pairs, num, c);
    expect_sum(comms[c]);
  }
  finalize_pairs = pairs;
  num_finalize_pairs = num;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, transfer_in_finalize, &keyval, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
#ifdef SESSION
  MPI_Session_finalize(&session);
#endif
  MPI_Finalize();
  return 0;
}
