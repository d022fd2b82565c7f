/* Which blocks pool.c gives out: it runs in one process that says of itself that it is two ranks. Uses no MPI. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "partitioned/node/near_ranks.h"
#include "partitioned/node/pool.h"
#include "partitioned/node/shared_file.h"
#include "partitioned/process/world.h"

enum { NUM_RANKS = 2, PEER = 5, OTHER = 3, KIB = 1024 };

eb_world_state eb_world;
void eb_lock(void) {}
void eb_unlock(void) {}
int PMPI_Comm_rank(MPI_Comm comm, int *rank) { return (void)comm, *rank = 0, MPI_SUCCESS; }
int PMPI_Comm_size(MPI_Comm comm, int *size) { return (void)comm, *size = NUM_RANKS, MPI_SUCCESS; }
int PMPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return (void)data, (void)count, (void)type, (void)root, (void)comm, MPI_SUCCESS;
}
int PMPI_Allreduce(const void *own, void *all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return (void)count, (void)type, (void)op, (void)comm, *(int *)all = *(const int *)own, MPI_SUCCESS;
}

static void expect(bool is_so, const char *what, int64_t bytes) {
  if (is_so) return;
  fprintf(stderr, "%s: %lld\n", what, (long long)bytes);
  exit(1);
}

static void begin(int64_t bytes, int64_t pair_bytes) { eb_pool_begin(MPI_COMM_SELF, bytes, pair_bytes, true); }

static void find_places(void) {
  static const int ranks[] = {2, 3, 7, 8, 11};
  enum { NUM = sizeof ranks / sizeof *ranks };
  expect(eb_near_begin(ranks, NUM) && eb_near_num() == NUM, "ranks of the node", NUM);
  for (int k = 0; k < NUM; k++) expect(eb_near_place(ranks[k]) == k, "the place of a rank", ranks[k]);
  eb_near_end();
}

/* What is said to be possible can be taken from new memory: the limits need not be sizes of blocks. */
static void compare(int64_t node_bytes, int64_t pair_bytes) {
  for (int64_t bytes = 3 * KIB / 2; bytes < 4 * 1024 * KIB; bytes += bytes / 7) {
    begin(node_bytes, pair_bytes);
    const bool may_have = eb_pool_may_have(bytes), may_have_both = eb_pool_may_have_both(bytes);
    expect(may_have == eb_pool_has_room(PEER, bytes), "room for a block that is too large", bytes);
    expect(may_have == (eb_pool_take(PEER, bytes) != NULL), "a block that is too large is possible", bytes);
    expect(!may_have_both || eb_pool_take(OTHER, bytes), "two blocks that are too large are possible", bytes);
    eb_pool_end();
  }
}

static void reuse(void) {
  begin(64 * KIB, 1024 * KIB);
  eb_pool_block *const large = eb_pool_take(PEER, 48 * KIB);
  expect(large && !eb_pool_take(PEER, 40 * KIB), "more than there is", 40 * KIB);
  eb_pool_return(large);
  expect(!eb_pool_take(PEER, 20 * KIB), "a block for much less", 20 * KIB);
  expect(eb_pool_has_room(PEER, 40 * KIB) && eb_pool_take(PEER, 40 * KIB) == large, "a block is not used again for a little less",
         40 * KIB);
  expect(!eb_pool_take(PEER, 40 * KIB), "a block for two", 40 * KIB);
  eb_pool_end();
}

/* A block that is used again counts with all of its bytes. */
static void count_pair(void) {
  begin(1024 * KIB, 64 * KIB);
  eb_pool_return(eb_pool_take(PEER, 48 * KIB));
  for (int k = 0; k < 3; k++) { /* each time all is given back */
    eb_pool_block *const first = eb_pool_take(PEER, 32 * KIB), *const second = eb_pool_take(PEER, 16 * KIB);
    expect(first && second && !eb_pool_take(PEER, 32 * KIB), "the limit of a pair", k);
    eb_pool_return(first);
    eb_pool_return(second);
  }
  eb_pool_end();
}

/* Blocks that are left in any order, of which some are left by one side only, are given again. */
static void leave_many(void) {
  enum { NUM = 2000 };
  static eb_pool_block *blocks[NUM];
  begin((NUM + 4) * KIB, (NUM + 4) * KIB);
  for (int k = 0; k < NUM; k++) expect((blocks[k] = eb_pool_take(PEER, KIB)), "a block of many", k);
  for (int k = 0; k < NUM; k += 2) eb_pool_leave(blocks[k]);
  for (int k = 1; k < NUM; k += 2) eb_pool_return(blocks[k]);
  int num = 0;
  for (int tries = 0; tries < NUM; tries++) num += eb_pool_take(PEER, KIB) != NULL;
  expect(num == NUM / 2, "blocks that both sides have left", num);
  eb_pool_end();
}

int main(void) {
  static const int64_t limits[][2] = {
      {1048576, 1048576}, {64 << 20, 2200000}, {64 << 20, 40 << 20}, {2200000, 64 << 20}, {5000, 5000}};
  static const int ranks[NUM_RANKS] = {OTHER, PEER};
  find_places();
  expect(eb_near_begin(ranks, NUM_RANKS), "ranks of the node", NUM_RANKS);
  for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) compare(limits[k][0], limits[k][1]);
  reuse();
  count_pair();
  leave_many();
  eb_near_end();
  return 0;
}
