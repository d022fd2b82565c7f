/* Sums per rank, which rank 0 prints in MPI_Finalize, and the events of channels. */
#include "partitioned/statistics/statistics.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "partitioned/domain/domain.h"
#include "partitioned/process/clock.h"
#include "partitioned/process/world.h"
#include "partitioned/segmentation/c_locale.h"
#include "partitioned/statistics/paths.h"
#include "partitioned/statistics/trace.h"

bool eb_statistics_on;

typedef struct {
  int64_t requests, starts, partitions, segments, bytes;
  double early_s; /* summed over segments: from a segment's sending to the last Pready of its start */
} sums;

static struct {
  pthread_mutex_t lock;
  sums sent, received;
} all_channels = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
  _Alignas(64) atomic_llong num_used, num_taken;
} lanes[EB_MAX_LANES];

void eb_statistics_begin(void) {
  eb_statistics_on = eb_world.config.statistics || eb_trace_is_on();
  eb_trace_begin();
}

static sums *sums_of(const eb_transfer *transfer) { return transfer->is_send ? &all_channels.sent : &all_channels.received; }

void eb_statistics_created(eb_statistics *own, const eb_transfer *transfer) {
  own->transfer = transfer;
  if (!eb_statistics_on) return;
  pthread_mutex_lock(&all_channels.lock);
  sums_of(transfer)->requests++;
  pthread_mutex_unlock(&all_channels.lock);
}

void eb_statistics_started(eb_statistics *own, uint64_t start) {
  own->start = start;
  own->begin_s = eb_now_s();
  atomic_store_explicit(&own->sent_after_s, 0, memory_order_relaxed);
}

static void add_event(const eb_statistics *own, const char *name, const char *what, int index, int64_t bytes, double begin_s,
                      double duration_s) {
  char text[200];
  snprintf(text, sizeof text, "\"%s\":%d,\"bytes\":%lld,\"peer\":%d,\"tag\":%d,\"start\":%llu", what, index, (long long)bytes,
           own->transfer->peer, own->transfer->tag, (unsigned long long)own->start);
  eb_trace_event(name, text, begin_s, duration_s);
}

void eb_statistics_pready(eb_statistics *own, int partition) {
  const double now_s = eb_now_s();
  atomic_store_explicit(&own->last_pready_s, now_s, memory_order_relaxed);
  add_event(own, "pready", "partition", partition, own->transfer->partition_bytes, now_s, -1);
}

void eb_statistics_segment_sent(eb_statistics *own, int segment, int64_t bytes, double begin_s) {
  eb_add_s(&own->sent_after_s, begin_s - own->begin_s);
  add_event(own, "segment send", "segment", segment, bytes, begin_s, eb_now_s() - begin_s);
}

void eb_statistics_segment_arrived(const eb_statistics *own, int segment, int64_t bytes) {
  add_event(own, "segment arrival", "segment", segment, bytes, eb_now_s(), -1);
}

void eb_statistics_lane_used(int lane) { atomic_fetch_add_explicit(&lanes[lane].num_used, 1, memory_order_relaxed); }

void eb_statistics_lane_taken(int lane) { atomic_fetch_add_explicit(&lanes[lane].num_taken, 1, memory_order_relaxed); }

void eb_statistics_waited(const eb_statistics *own, int num_segments, double begin_s) {
  const char *const name = own->transfer->is_send ? "wait for send" : "wait for receive";
  add_event(own, name, "segments", num_segments, own->transfer->total_bytes, begin_s, eb_now_s() - begin_s);
}

/* Under the lock. */
static void count_path(eb_statistics *own, int num_segments, eb_path path) {
  const unsigned bit = 1U << path;
  eb_paths_count(own->transfer, path, num_segments, !(own->paths_used & bit));
  own->paths_used |= bit;
}

void eb_statistics_finished(eb_statistics *own, int num_segments, eb_path path) {
  const double last_after_s = atomic_load_explicit(&own->last_pready_s, memory_order_relaxed) - own->begin_s;
  const double early_s = own->transfer->is_send ? num_segments * last_after_s - own->sent_after_s : 0;
  pthread_mutex_lock(&all_channels.lock);
  sums *const sum = sums_of(own->transfer);
  sum->starts++;
  sum->partitions += own->transfer->num_partitions;
  sum->segments += num_segments;
  sum->bytes += own->transfer->total_bytes;
  if (early_s > 0) sum->early_s += early_s;
  if (own->transfer->is_send) count_path(own, num_segments, path);
  pthread_mutex_unlock(&all_channels.lock);
}

static void print_row(int rank, const char *side, const sums *sum) {
  if (sum->requests == 0) return;
  fprintf(stderr, "%6d %9s %9lld %9lld %11lld %10lld %15lld", rank, side, (long long)sum->requests, (long long)sum->starts,
          (long long)sum->partitions, (long long)sum->segments, (long long)sum->bytes);
  if (sum->segments > 0 && side[0] == 's') fprintf(stderr, " %12.1f", 1e6 * sum->early_s / (double)sum->segments);
  fputc('\n', stderr);
}

/* Collective over the domain. */
static void print_lanes(void) {
  int64_t mine[EB_MAX_LANES][2], all[EB_MAX_LANES][2];
  for (int lane = 0; lane < EB_MAX_LANES; lane++) {
    mine[lane][0] = lanes[lane].num_used;
    mine[lane][1] = lanes[lane].num_taken;
  }
  if (PMPI_Reduce(mine, all, 2 * EB_MAX_LANES, MPI_INT64_T, MPI_SUM, 0, eb_domain.comm) != MPI_SUCCESS || eb_domain.rank != 0)
    return;
  fprintf(stderr, "%6s %9s %9s\n", "lane", "segments", "taken");
  for (int lane = 0; lane < eb_domain.num_lanes; lane++)
    fprintf(stderr, "%6d %9lld %9lld\n", lane, (long long)all[lane][0], (long long)all[lane][1]);
  fprintf(stderr, "taken: segments that found another thread sending on their lane, and were left to it; sums of all ranks\n");
}

/* As EARLYBIRD_COSTS takes them: what was measured here can be given to the next run. */
static void print_costs(void) {
  static const char *const origins[] = {"unknown", "from EARLYBIRD_COSTS", "kept by an earlier run", "measured in this run"};
  const eb_config *const config = &eb_world.config;
  char text[1024];
  fprintf(stderr, "message costs used: EARLYBIRD_COSTS=\"");
  if (config->intra_node.num > 0 && eb_cost_print(&config->intra_node, 3, text, sizeof text) > 0)
    fprintf(stderr, "intra_node_protocols=%s", text);
  if (config->inter_node.num > 0 && eb_cost_print(&config->inter_node, 3, text, sizeof text) > 0)
    fprintf(stderr, "%sinter_node_protocols=%s", config->intra_node.num > 0 ? " " : "", text);
  if (config->node_ring.num > 0 && eb_cost_print(&config->node_ring, 3, text, sizeof text) > 0)
    fprintf(stderr, " node_ring_protocols=%s", text);
  if (config->node_direct.num > 0 && eb_cost_print(&config->node_direct, 3, text, sizeof text) > 0)
    fprintf(stderr, " node_direct_protocols=%s", text);
  fprintf(stderr, "\"\nwithin nodes %s, between nodes %s\n", origins[config->intra_node_origin],
          origins[config->inter_node_origin]);
}

static void print_table(const char *remark) {
  struct {
    int rank;
    sums sent, received;
  } mine = {eb_world.rank, all_channels.sent, all_channels.received}, *all = NULL;
  if (eb_domain.rank == 0) all = malloc((size_t)eb_domain.size * sizeof mine);
  if (PMPI_Gather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, 0, eb_domain.comm) == MPI_SUCCESS && all) {
    const eb_c_locale locale = eb_c_locale_begin();
    fprintf(stderr, "earlybird: partitioned communication\n%6s %9s %9s %9s %11s %10s %15s %12s\n", "rank", "side", "requests",
            "starts", "partitions", "segments", "bytes", "us early");
    for (int r = 0; r < eb_domain.size; r++) {
      print_row(all[r].rank, "sends", &all[r].sent);
      print_row(all[r].rank, "receives", &all[r].received);
    }
    fprintf(stderr, "us early: mean time from the send of a segment until the last partition of the same start was ready\n");
    print_costs();
    if (remark) fprintf(stderr, "%s\n", remark);
    eb_c_locale_end(locale);
  }
  free(all);
  if (eb_world.config.node_path != EB_NODE_OFF) eb_paths_print();
  print_lanes();
}

void eb_statistics_end(const char *remark) {
  if (eb_world.config.statistics) print_table(remark);
  eb_trace_end();
  eb_statistics_on = false;
}
