/* Arguments: a folder, and then one or more styles, each with a file of messages ("source destination bytes" a line) that are
 * exchanged in this style. The k-th style, from 0, is in the region k + 2 of MPI_Pcontrol.
 *
 * The ranks of every line are those of MPI_COMM_WORLD. The file says what a recording of this program must contain.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX 4096
#define NUM_THREADS 4
#define LARGEST (1 << 20)

static int rank, size, num, source[MAX], destination[MAX], bytes[MAX];
static char *out, *in; /* a slot for each message that is under way */

static char *out_of(int m) { return out + (size_t)(m % 64) * LARGEST; }
static char *in_of(int m) { return in + (size_t)(m % 64) * LARGEST; }

static void read_messages(const char *path) {
  FILE *file = fopen(path, "r");
  if (!file) MPI_Abort(MPI_COMM_WORLD, 3);
  num = 0;
  while (fscanf(file, "%d %d %d", &source[num], &destination[num], &bytes[num]) == 3) num++;
  fclose(file);
}

/* How a rank of MPI_COMM_WORLD is called in the communicator in use. */
static int identity(int world) { return world; }

typedef int send_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int isend_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static void with_isend(isend_fn *isend, MPI_Comm comm, int (*local)(int), int keeps_statuses) {
  MPI_Request requests[2 * MAX];
  MPI_Status statuses[2 * MAX];
  int n = 0;
  for (int m = 0; m < num; m++)
    if (destination[m] == rank) MPI_Irecv(in_of(m), LARGEST, MPI_BYTE, local(source[m]), m, comm, &requests[n++]);
  for (int m = 0; m < num; m++)
    if (source[m] == rank) isend(out_of(m), bytes[m], MPI_BYTE, local(destination[m]), m, comm, &requests[n++]);
  MPI_Waitall(n, requests, keeps_statuses ? statuses : MPI_STATUSES_IGNORE);
}

static void with_send(send_fn *send) {
  MPI_Request requests[MAX];
  int n = 0;
  for (int m = 0; m < num; m++)
    if (destination[m] == rank) MPI_Irecv(in_of(m), LARGEST, MPI_BYTE, source[m], m, MPI_COMM_WORLD, &requests[n++]);
  MPI_Barrier(MPI_COMM_WORLD); /* MPI_Rsend needs the receives */
  for (int m = 0; m < num; m++)
    if (source[m] == rank) send(out_of(m), bytes[m], MPI_BYTE, destination[m], m, MPI_COMM_WORLD);
  for (int r = 0; r < n; r++) MPI_Wait(&requests[r], MPI_STATUS_IGNORE);
}

/* All ranks go through the messages in one order, so nothing waits in a circle. */
static void with_sendrecv(int replaces) {
  for (int m = 0; m < num; m++) {
    const int to = source[m] == rank ? destination[m] : MPI_PROC_NULL, from = destination[m] == rank ? source[m] : MPI_PROC_NULL;
    if (to == MPI_PROC_NULL && from == MPI_PROC_NULL) continue;
    if (replaces) MPI_Sendrecv_replace(out_of(m), bytes[m], MPI_BYTE, to, m, from, m, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Sendrecv(out_of(m), bytes[m], MPI_BYTE, to, m, in_of(m), LARGEST, MPI_BYTE, from, m, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

#ifdef HAS_ISENDRECV
static void with_isendrecv(void) {
  for (int m = 0; m < num; m++) {
    const int to = source[m] == rank ? destination[m] : MPI_PROC_NULL, from = destination[m] == rank ? source[m] : MPI_PROC_NULL;
    MPI_Request request;
    if (to == MPI_PROC_NULL && from == MPI_PROC_NULL) continue;
    MPI_Isendrecv(out_of(m), bytes[m], MPI_BYTE, to, m, in_of(m), LARGEST, MPI_BYTE, from, m, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}
#endif

/* Every round completes in another way. */
static void complete(int round, int n, MPI_Request *requests) {
  MPI_Status statuses[2 * MAX];
  int indices[2 * MAX], left = n, index, flag = 0, num_done;
  if (round == 0)
    while (left > 0) {
      MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE);
      left -= index != MPI_UNDEFINED;
    }
  if (round == 1)
    while (left > 0) {
      MPI_Waitsome(n, requests, &num_done, indices, statuses);
      left -= num_done;
    }
  if (round == 2)
    while (n > 0 && !flag) MPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE);
  if (round == 3)
    while (left > 0) {
      MPI_Testany(n, requests, &index, &flag, MPI_STATUS_IGNORE);
      left -= flag && index != MPI_UNDEFINED;
    }
  if (round == 4)
    while (left > 0) {
      MPI_Testsome(n, requests, &num_done, indices, MPI_STATUSES_IGNORE);
      left -= num_done;
    }
  if (round == 5)
    for (int r = 0; r < n; r++)
      for (flag = 0; !flag;) MPI_Test(&requests[r], &flag, MPI_STATUS_IGNORE);
}

static void persistent(void) {
  MPI_Request requests[2 * MAX];
  int n = 0;
  for (int m = 0; m < num; m++) {
    if (destination[m] == rank) MPI_Recv_init(in_of(m), LARGEST, MPI_BYTE, source[m], m, MPI_COMM_WORLD, &requests[n++]);
    if (source[m] == rank) MPI_Send_init(out_of(m), bytes[m], MPI_BYTE, destination[m], m, MPI_COMM_WORLD, &requests[n++]);
  }
  for (int round = 0; round < 6; round++) {
    if (round % 2) MPI_Startall(n, requests);
    for (int r = 0; r < n && round % 2 == 0; r++) MPI_Start(&requests[r]);
    complete(round, n, requests);
  }
  for (int r = 0; r < n; r++) MPI_Request_free(&requests[r]);
}

/* As above with requests that are not persistent: the first six messages' ways of completion go round. */
static void completed_in_every_way(void) {
  for (int round = 0; round < 6; round++) {
    MPI_Request requests[2 * MAX];
    int n = 0;
    for (int m = 0; m < num; m++) {
      if (destination[m] == rank) MPI_Irecv(in_of(m), LARGEST, MPI_BYTE, source[m], m, MPI_COMM_WORLD, &requests[n++]);
      if (source[m] == rank) MPI_Isend(out_of(m), bytes[m], MPI_BYTE, destination[m], m, MPI_COMM_WORLD, &requests[n++]);
    }
    complete(round, n, requests);
  }
}

static void partitioned(void) {
  MPI_Request requests[2 * MAX];
  int n = 0, is_send[2 * MAX];
  for (int m = 0; m < num; m++) {
    if (destination[m] == rank && ++n)
      MPI_Precv_init(in_of(m), 4, bytes[m] / 4, MPI_BYTE, source[m], m, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[n - 1]),
          is_send[n - 1] = 0;
    if (source[m] == rank && ++n)
      MPI_Psend_init(out_of(m), 4, bytes[m] / 4, MPI_BYTE, destination[m], m, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[n - 1]),
          is_send[n - 1] = 1;
  }
  for (int round = 0; round < 3; round++) {
    MPI_Startall(n, requests);
    for (int r = 0; r < n; r++)
      if (is_send[r]) {
        MPI_Pready(3, requests[r]);
        MPI_Pready_range(0, 2, requests[r]);
      }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  }
  for (int r = 0; r < n; r++) MPI_Request_free(&requests[r]);
}

/* Receives that learn their peer from the message. */
static void wildcard(void) {
  MPI_Request requests[MAX];
  int n = 0, num_mine = 0;
  for (int m = 0; m < num; m++)
    if (source[m] == rank) MPI_Isend(out_of(m), bytes[m], MPI_BYTE, destination[m], m, MPI_COMM_WORLD, &requests[n++]);
  for (int m = 0; m < num; m++) num_mine += destination[m] == rank;
  for (int r = 0; r < num_mine; r++) {
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    int flag = 0;
    switch (r % 4) {
      case 0:
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
        MPI_Mrecv(in, LARGEST, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        break;
      case 1:
        while (!flag) MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
        MPI_Imrecv(in, LARGEST, MPI_BYTE, &message, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
      case 2: MPI_Recv(in, LARGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE); break;
      default: MPI_Irecv(in, LARGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request); MPI_Wait(&request, &status);
    }
  }
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

/* A vector of 4 bytes in every 8; and messages to and from nobody, which are none. */
static void derived(void) {
  MPI_Datatype gaps, ints;
  MPI_Request requests[2 * MAX];
  int n = 0;
  MPI_Type_contiguous(4, MPI_BYTE, &ints);
  MPI_Type_create_resized(ints, 0, 8, &gaps);
  MPI_Type_commit(&gaps);
  for (int m = 0; m < num; m++) {
    if (destination[m] == rank) MPI_Irecv(in_of(m), LARGEST / 8, gaps, source[m], m, MPI_COMM_WORLD, &requests[n++]);
    if (source[m] == rank) MPI_Isend(out_of(m), bytes[m] / 4, gaps, destination[m], m, MPI_COMM_WORLD, &requests[n++]);
  }
  MPI_Irecv(in, 8, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[n++]);
  MPI_Isend(out, 8, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[n++]);
  MPI_Send(out, 8, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Recv(in, 8, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  MPI_Type_free(&gaps);
  MPI_Type_free(&ints);
}

#ifdef HAS_LARGE_COUNT
static void large(void) {
  MPI_Request requests[MAX];
  int n = 0;
  for (int m = 0; m < num; m++)
    if (destination[m] == rank) MPI_Irecv_c(in_of(m), LARGEST, MPI_BYTE, source[m], m, MPI_COMM_WORLD, &requests[n++]);
  for (int m = 0; m < num; m++)
    if (source[m] == rank) MPI_Send_c(out_of(m), bytes[m], MPI_BYTE, destination[m], m, MPI_COMM_WORLD);
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}
#endif

/* What this rank sends to, and receives from, each rank in all messages; at displacement 0, because nothing looks at the data. */
static void count_blocks(int *sent, int *received, int *zeros) {
  memset(sent, 0, sizeof *sent * size), memset(received, 0, sizeof *received * size), memset(zeros, 0, sizeof *zeros * size);
  for (int m = 0; m < num; m++) {
    if (source[m] == rank) sent[destination[m]] += bytes[m];
    if (destination[m] == rank) received[source[m]] += bytes[m];
  }
}

static void alltoallv(int is_w) {
  int sent[size], received[size], zeros[size], at[size];
  MPI_Datatype types[size];
  MPI_Request request;
  count_blocks(sent, received, zeros);
  for (int r = 0; r < size; r++) types[r] = MPI_BYTE, at[r] = r * LARGEST * 4;
  if (is_w) MPI_Alltoallw(out, sent, zeros, types, in, received, at, types, MPI_COMM_WORLD);
  else MPI_Alltoallv(out, sent, zeros, MPI_BYTE, in, received, at, MPI_BYTE, MPI_COMM_WORLD);
  MPI_Ialltoallv(out, sent, zeros, MPI_BYTE, in, received, at, MPI_BYTE, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void neighbours(void) {
  int sent[size], received[size], zeros[size], at[size];
  int from[size], to[size], sendcounts[size], recvcounts[size], num_from = 0, num_to = 0;
  MPI_Comm graph;
  MPI_Request request;
  count_blocks(sent, received, zeros);
  for (int r = size - 1; r >= 0; r--) {
    if (sent[r] > 0) sendcounts[num_to] = sent[r], to[num_to++] = r;
    if (received[r] > 0) recvcounts[num_from] = received[r], from[num_from++] = r;
    at[r] = r * LARGEST * 4;
  }
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, num_from, from, MPI_UNWEIGHTED, num_to, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &graph);
  MPI_Neighbor_alltoallv(out, sendcounts, zeros, MPI_BYTE, in, recvcounts, at, MPI_BYTE, graph);
  MPI_Ineighbor_alltoallv(out, sendcounts, zeros, MPI_BYTE, in, recvcounts, at, MPI_BYTE, graph, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&graph);
}

/* A ring that ends at the last rank; each sends the bytes of the first message to its neighbours. */
static void cart(void) {
  int dims = size, periods = 0;
  MPI_Comm line;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &dims, &periods, 0, &line);
  MPI_Neighbor_alltoall(out, bytes[0], MPI_BYTE, in, bytes[0], MPI_BYTE, line);
  MPI_Neighbor_allgather(out, bytes[0], MPI_BYTE, in, bytes[0], MPI_BYTE, line);
  MPI_Comm_free(&line);
}

/* Ranks of one parity in a communicator, in reverse order. */
static int in_split(int world) { return (size - 1 - world) / 2; }

static void split(void) {
  MPI_Comm half;
  for (int time = 0; time < 3; time++) { /* the same members again */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    with_isend(MPI_Isend, half, in_split, time);
    MPI_Comm_free(&half);
  }
}

static int in_half(int world) { return world / 2; }

static void inter(void) {
  MPI_Comm half, both;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &both);
  with_isend(MPI_Isend, both, in_half, 1);
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

static void *exchange_some(void *of) {
  const int thread = (int)(long)of;
  for (int m = thread; m < num; m += NUM_THREADS) {
    MPI_Request requests[2];
    int n = 0;
    if (destination[m] == rank) MPI_Irecv(in_of(m), LARGEST, MPI_BYTE, source[m], m, MPI_COMM_WORLD, &requests[n++]);
    if (source[m] == rank) MPI_Isend(out_of(m), bytes[m], MPI_BYTE, destination[m], m, MPI_COMM_WORLD, &requests[n++]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  }
  return NULL;
}

static void threads(void) {
  pthread_t thread[NUM_THREADS];
  for (int round = 0; round < 2; round++) { /* the second round takes over what the first has left */
    for (long t = 0; t < NUM_THREADS; t++) pthread_create(&thread[t], NULL, exchange_some, (void *)t);
    for (int t = 0; t < NUM_THREADS; t++) pthread_join(thread[t], NULL);
  }
}

static void collectives(void) {
  int counts[size], zeros[size];
  for (int r = 0; r < size; r++) counts[r] = r + 1, zeros[r] = 0;
  MPI_Bcast(out, 100, MPI_INT, 1, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, in, 10, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Alltoall(out, 8, MPI_BYTE, in, 8, MPI_BYTE, MPI_COMM_WORLD);
  MPI_Gatherv(out, rank + 1, MPI_BYTE, in, counts, zeros, MPI_BYTE, 0, MPI_COMM_WORLD);
  MPI_Scatter(out, 5, MPI_BYTE, in, 5, MPI_BYTE, 0, MPI_COMM_WORLD);
  MPI_Reduce_scatter(out, in, counts, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
}

/* Exchanges until it is killed. */
static void forever(void) {
  for (;;) with_isend(MPI_Isend, MPI_COMM_WORLD, identity, 0);
}

static void exchange(const char *style) {
#define STYLE(name, call) \
  if (strcmp(style, name) == 0) call
  STYLE("isend", with_isend(MPI_Isend, MPI_COMM_WORLD, identity, 1));
  STYLE("issend", with_isend(MPI_Issend, MPI_COMM_WORLD, identity, 0));
  STYLE("send", with_send(MPI_Send));
  STYLE("ssend", with_send(MPI_Ssend));
  STYLE("rsend", with_send(MPI_Rsend));
  STYLE("sendrecv", with_sendrecv(0));
  STYLE("sendrecv_replace", with_sendrecv(1));
#ifdef HAS_ISENDRECV
  STYLE("isendrecv", with_isendrecv());
#endif
#ifdef HAS_LARGE_COUNT
  STYLE("large", large());
#endif
  STYLE("persistent", persistent());
  STYLE("completion", completed_in_every_way());
  STYLE("partitioned", partitioned());
  STYLE("wildcard", wildcard());
  STYLE("derived", derived());
  STYLE("alltoallv", alltoallv(0));
  STYLE("alltoallw", alltoallv(1));
  STYLE("neighbours", neighbours());
  STYLE("cart", cart());
  STYLE("split", split());
  STYLE("inter", inter());
  STYLE("threads", threads());
  STYLE("collectives", collectives());
  STYLE("forever", forever());
  STYLE("abort", MPI_Abort(MPI_COMM_WORLD, 7));
  STYLE("exit", exit(5));
}

int main(int argc, char **argv) {
  int provided, level = MPI_THREAD_FUNNELED;
  for (int a = 2; a < argc; a += 2)
    if (strcmp(argv[a], "threads") == 0) level = MPI_THREAD_MULTIPLE;
  MPI_Init_thread(&argc, &argv, level, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  out = calloc(64, LARGEST), in = calloc(64, LARGEST);
  for (int a = 2; a + 1 < argc; a += 2) {
    read_messages(argv[a + 1]);
    MPI_Barrier(MPI_COMM_WORLD); /* no message of one style is received in another */
    MPI_Pcontrol(a / 2 + 1);
    exchange(argv[a]);
  }
  MPI_Finalize();
  return 0;
}
