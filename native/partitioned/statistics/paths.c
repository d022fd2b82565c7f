/* Counts starts, and adds up what the ranks have counted. */
#include "partitioned/statistics/paths.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "partitioned/domain/domain.h"
#include "partitioned/wire/asked_path.h"

/* Of a rank; others count in the sums only. */
enum { MAX_SIZES = 32, MAX_ALL_SIZES = 128 };

typedef struct {
  int64_t requests, starts, segments, bytes; /* requests that have used the path */
} path_sums;

typedef struct {
  int64_t total_bytes, num_partitions; /* 0: unused */
  int64_t starts[EB_NUM_PATHS];
} size_sums;

static path_sums paths[EB_NUM_PATHS];
static size_sums sizes[MAX_SIZES];

/* That of this size among `most`, or an unused one that becomes it; NULL: there are more. */
static size_sums *find(size_sums *among, int most, int64_t total_bytes, int64_t num_partitions) {
  for (int k = 0; k < most; k++) {
    if (among[k].num_partitions == 0) among[k] = (size_sums){.total_bytes = total_bytes, .num_partitions = num_partitions};
    if (among[k].total_bytes == total_bytes && among[k].num_partitions == num_partitions) return &among[k];
  }
  return NULL;
}

void eb_paths_count(const eb_transfer *transfer, eb_path path, int num_segments, bool is_first) {
  paths[path].requests += is_first;
  paths[path].starts++;
  paths[path].segments += num_segments;
  paths[path].bytes += transfer->total_bytes;
  size_sums *const of_size = find(sizes, MAX_SIZES, transfer->total_bytes, transfer->num_partitions);
  if (of_size) of_size->starts[path]++;
}

static int compare(const void *first, const void *second) {
  const size_sums *const a = first, *const b = second;
  if (a->total_bytes != b->total_bytes) return a->total_bytes < b->total_bytes ? -1 : 1;
  return a->num_partitions < b->num_partitions ? -1 : a->num_partitions > b->num_partitions;
}

/* Those of all ranks as those of one. */
static void print_sizes(const size_sums *of_ranks) {
  static size_sums all[MAX_ALL_SIZES];
  int num = 0;
  for (int k = 0; k < MAX_SIZES * eb_domain.size; k++) {
    size_sums *const sum = of_ranks[k].num_partitions
                               ? find(all, MAX_ALL_SIZES, of_ranks[k].total_bytes, of_ranks[k].num_partitions)
                               : NULL;
    for (int path = 0; sum && path < EB_NUM_PATHS; path++) sum->starts[path] += of_ranks[k].starts[path];
  }
  while (num < MAX_ALL_SIZES && all[num].num_partitions > 0) num++;
  qsort(all, (size_t)num, sizeof *all, compare);
  fprintf(stderr, "%17s %10s %9s %9s %9s\n", "bytes of requests", "partitions", "message", "ring", "direct");
  for (int k = 0; k < num; k++)
    fprintf(stderr, "%17lld %10lld %9lld %9lld %9lld\n", (long long)all[k].total_bytes, (long long)all[k].num_partitions,
            (long long)all[k].starts[EB_PATH_MESSAGE], (long long)all[k].starts[EB_PATH_RING],
            (long long)all[k].starts[EB_PATH_DIRECT]);
  fprintf(stderr, "message, ring, direct: starts of send requests of this size on each path; sums of all ranks\n");
}

static void gather_sizes(void) {
  size_sums *const all = eb_domain.rank == 0 ? malloc((size_t)eb_domain.size * sizeof sizes) : NULL;
  int has_memory = eb_domain.rank != 0 || all != NULL;
  PMPI_Bcast(&has_memory, 1, MPI_INT, 0, eb_domain.comm);
  if (has_memory && PMPI_Gather(sizes, sizeof sizes, MPI_BYTE, all, sizeof sizes, MPI_BYTE, 0, eb_domain.comm) == MPI_SUCCESS &&
      all)
    print_sizes(all);
  free(all);
}

void eb_paths_print(void) {
  enum { NUM_SUMS = sizeof paths[0] / sizeof(int64_t) };
  int64_t all[EB_NUM_PATHS][NUM_SUMS], num_refused = eb_asked_path_num_refused(), all_refused = 0;
  if (PMPI_Reduce(paths, all, EB_NUM_PATHS * NUM_SUMS, MPI_INT64_T, MPI_SUM, 0, eb_domain.comm) != MPI_SUCCESS ||
      PMPI_Reduce(&num_refused, &all_refused, 1, MPI_INT64_T, MPI_SUM, 0, eb_domain.comm) != MPI_SUCCESS)
    return;
  if (eb_domain.rank == 0) {
    fprintf(stderr, "%9s %9s %9s %10s %15s\n", "path", "requests", "starts", "segments", "bytes");
    for (int path = 0; path < EB_NUM_PATHS; path++)
      fprintf(stderr, "%9s %9lld %9lld %10lld %15lld\n", eb_path_name((eb_path)path), (long long)all[path][0],
              (long long)all[path][1], (long long)all[path][2], (long long)all[path][3]);
    fprintf(stderr, "path: of send requests, of which some starts travelled on it; sums of all ranks\n");
    if (all_refused > 0)
      fprintf(stderr, "%lld send requests within a node cannot use the path that EARLYBIRD_NODE_PATH asks for (%s)\n",
              (long long)all_refused, eb_path_name(eb_asked_path()));
  }
  gather_sizes();
}
