/* What record_traffic.c does for messages, for calls that are none: one-sided communication, persistent collectives, files,
 * sessions. Its arguments are the same; files are written to the folder.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX 4096
#define LARGEST (1 << 20)

static int rank, size, num, source[MAX], destination[MAX], bytes[MAX];
static char *memory, *own; /* what others see, and what is put and got */

static void read_messages(const char *path) {
  FILE *file = fopen(path, "r");
  if (!file) MPI_Abort(MPI_COMM_WORLD, 3);
  num = 0;
  while (fscanf(file, "%d %d %d", &source[num], &destination[num], &bytes[num]) == 3) num++;
  fclose(file);
}

static MPI_Win window(void) {
  MPI_Win win;
  MPI_Win_create(memory, LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  return win;
}

static void put_under_fence(void) {
  MPI_Win win = window();
  MPI_Win_fence(0, win);
  for (int m = 0; m < num; m++)
    if (source[m] == rank) MPI_Put(own, bytes[m], MPI_BYTE, destination[m], 0, bytes[m], MPI_BYTE, win);
  MPI_Put(own, 8, MPI_BYTE, MPI_PROC_NULL, 0, 8, MPI_BYTE, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
}

static void get_under_fence(void) {
  MPI_Win win = window();
  MPI_Win_fence(0, win);
  for (int m = 0; m < num; m++)
    if (destination[m] == rank) MPI_Get(own, bytes[m], MPI_BYTE, source[m], 0, bytes[m], MPI_BYTE, win);
  MPI_Get(own, 8, MPI_BYTE, MPI_PROC_NULL, 0, 8, MPI_BYTE, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
}

/* Integers, of which every second is meant: gaps do not count. */
static void accumulate_under_fence(void) {
  MPI_Datatype gaps;
  MPI_Win win = window();
  MPI_Type_create_resized(MPI_INT, 0, 8, &gaps);
  MPI_Type_commit(&gaps);
  MPI_Win_fence(0, win);
  for (int m = 0; m < num; m++)
    if (source[m] == rank) MPI_Accumulate(own, bytes[m] / 4, gaps, destination[m], 0, bytes[m] / 4, MPI_INT, MPI_SUM, win);
  MPI_Win_fence(0, win);
  MPI_Type_free(&gaps);
  MPI_Win_free(&win);
}

static void put_under_lock(void) {
  MPI_Win win;
  void *base;
  MPI_Win_allocate(LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  for (int m = 0; m < num; m++) {
    if (source[m] != rank) continue;
    MPI_Win_lock(MPI_LOCK_SHARED, destination[m], 0, win);
    MPI_Put(own, bytes[m], MPI_BYTE, destination[m], 0, bytes[m], MPI_BYTE, win);
    MPI_Win_unlock(destination[m], win);
  }
  MPI_Win_free(&win);
}

static void with_requests(int gets) {
  MPI_Win win = window();
  MPI_Win_lock_all(0, win);
  for (int m = 0; m < num; m++) {
    MPI_Request request;
    if ((gets ? destination[m] : source[m]) != rank) continue;
    if (gets) MPI_Rget(own, bytes[m], MPI_BYTE, source[m], 0, bytes[m], MPI_BYTE, win, &request);
    else if (m % 2) MPI_Rput(own, bytes[m], MPI_BYTE, destination[m], 0, bytes[m], MPI_BYTE, win, &request);
    else MPI_Raccumulate(own, bytes[m], MPI_BYTE, destination[m], 0, bytes[m], MPI_BYTE, MPI_REPLACE, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (!gets) MPI_Win_flush(destination[m], win);
  }
  MPI_Win_flush_all(win);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}

/* Each message goes both ways; then an integer goes both ways twice, and once it is only read. */
static void both_ways(void) {
  MPI_Win win = window();
  int *integers = (int *)own;
  MPI_Win_lock_all(0, win);
  for (int m = 0; m < num; m++) {
    if (source[m] != rank) continue;
    MPI_Get_accumulate(own, bytes[m], MPI_BYTE, own + LARGEST, bytes[m], MPI_BYTE, destination[m], 0, bytes[m], MPI_BYTE,
                       MPI_REPLACE, win);
    MPI_Win_flush(destination[m], win);
    MPI_Fetch_and_op(integers, integers + 1, MPI_INT, destination[m], 0, MPI_SUM, win);
    MPI_Win_flush(destination[m], win);
    MPI_Compare_and_swap(integers, integers + 2, integers + 1, MPI_INT, destination[m], 0, win);
    MPI_Win_flush(destination[m], win);
    MPI_Fetch_and_op(NULL, integers + 1, MPI_INT, destination[m], 0, MPI_NO_OP, win);
    MPI_Win_flush(destination[m], win);
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}

static void put_after_post(void) {
  MPI_Group all;
  MPI_Win win = window();
  MPI_Win_get_group(win, &all);
  MPI_Win_post(all, 0, win);
  MPI_Win_start(all, 0, win);
  for (int m = 0; m < num; m++)
    if (source[m] == rank) MPI_Put(own, bytes[m], MPI_BYTE, destination[m], 0, bytes[m], MPI_BYTE, win);
  MPI_Win_complete(win);
  MPI_Win_wait(win);
  MPI_Group_free(&all);
  MPI_Win_free(&win);
}

/* Intel MPI 2021.18 crashes at the first fence of a window whose communicator has been freed. */
#ifdef I_MPI_NUMVERSION
#define IS_FREED_FIRST 0
#else
#define IS_FREED_FIRST 1
#endif

/* Two windows in turn over ranks of one parity in reverse order. The recorder does not see how the second one is created. */
static void put_in_split(void) {
  MPI_Comm half;
  MPI_Win known, unknown;
  for (int time = 0; time < 3; time++) {
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Win_create(memory, LARGEST, 1, MPI_INFO_NULL, half, &known);
    PMPI_Win_create(memory + LARGEST, LARGEST, 1, MPI_INFO_NULL, half, &unknown);
    if (IS_FREED_FIRST) MPI_Comm_free(&half);
    MPI_Win_fence(0, known);
    MPI_Win_fence(0, unknown);
    for (int m = 0; m < num; m++)
      if (source[m] == rank)
        MPI_Put(own, bytes[m], MPI_BYTE, (size - 1 - destination[m]) / 2, 0, bytes[m], MPI_BYTE, m % 2 ? known : unknown);
    MPI_Win_fence(0, known);
    MPI_Win_fence(0, unknown);
    MPI_Win_free(&known);
    MPI_Win_free(&unknown);
    if (!IS_FREED_FIRST) MPI_Comm_free(&half);
  }
}

#ifdef HAS_LARGE_COUNT
static void put_large(void) {
  MPI_Win win;
  MPI_Win_create_c(memory, LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  for (int m = 0; m < num; m++)
    if (source[m] == rank) MPI_Put_c(own, bytes[m], MPI_BYTE, destination[m], 0, bytes[m], MPI_BYTE, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
}
#endif

#ifdef HAS_PERSISTENT_COLLECTIVES
enum { STARTS = 3 };

/* What this rank sends to, and receives from, each rank in all messages. */
static void count_blocks(int *sent, int *received) {
  memset(sent, 0, sizeof *sent * size), memset(received, 0, sizeof *received * size);
  for (int m = 0; m < num; m++) {
    if (source[m] == rank) sent[destination[m]] += bytes[m];
    if (destination[m] == rank) received[source[m]] += bytes[m];
  }
}

static void start_and_free(int n, MPI_Request *requests) {
  for (int start = 0; start < STARTS; start++) {
    if (start % 2) MPI_Startall(n, requests);
    for (int r = 0; r < n && start % 2 == 0; r++) MPI_Start(&requests[r]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
  }
  for (int r = 0; r < n; r++) MPI_Request_free(&requests[r]);
}

static void persistent_alltoallv(int is_w) {
  int sent[size], received[size], zeros[size], at[size];
  MPI_Datatype types[size];
  MPI_Request request;
  count_blocks(sent, received);
  for (int r = 0; r < size; r++) types[r] = MPI_BYTE, zeros[r] = 0, at[r] = r * LARGEST;
  if (is_w) MPI_Alltoallw_init(own, sent, zeros, types, memory, received, at, types, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  else MPI_Alltoallv_init(own, sent, zeros, MPI_BYTE, memory, received, at, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  start_and_free(1, &request);
}

static void persistent_neighbours(void) {
  int sent[size], received[size], zeros[size], at[size];
  int from[size], to[size], sendcounts[size], recvcounts[size], num_from = 0, num_to = 0;
  MPI_Comm graph;
  MPI_Request request;
  count_blocks(sent, received);
  for (int r = size - 1; r >= 0; r--) {
    if (sent[r] > 0) sendcounts[num_to] = sent[r], to[num_to++] = r;
    if (received[r] > 0) recvcounts[num_from] = received[r], from[num_from++] = r;
    zeros[r] = 0, at[r] = r * LARGEST;
  }
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, num_from, from, MPI_UNWEIGHTED, num_to, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &graph);
  MPI_Neighbor_alltoallv_init(own, sendcounts, zeros, MPI_BYTE, memory, recvcounts, at, MPI_BYTE, graph, MPI_INFO_NULL, &request);
  start_and_free(1, &request);
  MPI_Comm_free(&graph);
}

/* The last one is never started. */
static void persistent_collectives(void) {
  MPI_Request requests[4], idle;
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Bcast_init(own, 100, MPI_INT, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  MPI_Allreduce_init(own, memory, 10, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
  MPI_Gather_init(own, 3, MPI_BYTE, memory, 3, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[3]);
  MPI_Reduce_init(own, memory, 10, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &idle);
  start_and_free(4, requests);
  MPI_Request_free(&idle);
}
#endif

static void files(const char *folder) {
  char path[4096];
  MPI_File file;
  MPI_Request request;
  MPI_Offset at = 1000 * rank;
  snprintf(path, sizeof path, "%s/file", folder);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  MPI_File_write_at(file, at, own, 100 + rank, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_write_at_all(file, at, own, 50, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_iwrite_at(file, at, own, 30, MPI_BYTE, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_seek(file, at, MPI_SEEK_SET);
  MPI_File_read(file, own, 10, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_read_all(file, own, 20, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_read_at_all_begin(file, at, own, 40, MPI_BYTE);
  MPI_File_read_at_all_end(file, own, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

#ifdef HAS_SESSIONS
static int sessions(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "earlybird.tests.recorder", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
  return 0;
}
#endif

static void move(const char *style, const char *folder) {
#define STYLE(name, call) \
  if (strcmp(style, name) == 0) call
  STYLE("put_fence", put_under_fence());
  STYLE("get_fence", get_under_fence());
  STYLE("accumulate_fence", accumulate_under_fence());
  STYLE("put_lock", put_under_lock());
  STYLE("rput", with_requests(0));
  STYLE("rget", with_requests(1));
  STYLE("both_ways", both_ways());
  STYLE("put_post", put_after_post());
  STYLE("put_split", put_in_split());
#ifdef HAS_LARGE_COUNT
  STYLE("put_large", put_large());
#endif
#ifdef HAS_PERSISTENT_COLLECTIVES
  STYLE("persistent_alltoallv", persistent_alltoallv(0));
  STYLE("persistent_alltoallw", persistent_alltoallv(1));
  STYLE("persistent_neighbours", persistent_neighbours());
  STYLE("persistent_collectives", persistent_collectives());
#endif
  STYLE("files", files(folder));
}

int main(int argc, char **argv) {
#ifdef HAS_SESSIONS
  if (strcmp(argv[2], "sessions") == 0) return sessions();
#endif
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  memory = calloc(4, LARGEST), own = calloc(4, LARGEST);
  for (int a = 2; a + 1 < argc; a += 2) {
    read_messages(argv[a + 1]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(a / 2 + 1);
    move(argv[a], argv[1]);
  }
  MPI_Finalize();
  return 0;
}
