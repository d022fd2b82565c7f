/* Reads what earlier runs have kept, measures what is missing, and keeps both. */
#include "partitioned/persistence.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "partitioned/adaptation/learned.h"
#include "partitioned/cache/cache_file.h"
#include "partitioned/cache/identity.h"
#include "partitioned/cache/placement.h"
#include "partitioned/cache/store.h"
#include "partitioned/domain/calibrate.h"
#include "partitioned/domain/domain.h"
#include "partitioned/process/world.h"

/* As many kinds of nodes, MPIs and settings are kept. */
enum { MAX_FILES = 64 };

/* Of rank 0 of the domain; others know only the costs and results. */
static struct {
  bool is_on;
  bool is_renewable; /* what is kept may be replaced */
  bool has_news;     /* costs were measured */
  const char *remark; /* why something was not kept; NULL: nothing to say */
  char folder[EB_STORE_MAX_PATH];
  eb_identity identity;
  eb_cache *cache; /* as it was read, with the costs of this run; NULL: nothing is kept */
  int64_t begun;
} kept;

/* What rank 0 tells the others. */
typedef struct {
  eb_cost costs[EB_NUM_COSTS];
  eb_cost_origin origins[EB_NUM_COSTS];
  bool is_to_measure[EB_NUM_COSTS];
  bool is_thorough; /* later runs use what is measured */
  int num_results;
} notice;

static eb_cost *cost_of(int which) {
  eb_cost *const costs[EB_NUM_COSTS] = {&eb_world.config.intra_node, &eb_world.config.inter_node, &eb_world.config.node_ring,
                                        &eb_world.config.node_direct};
  return costs[which];
}

static eb_cost_origin *origin_of(int which) {
  eb_cost_origin *const origins[EB_NUM_COSTS] = {&eb_world.config.intra_node_origin, &eb_world.config.inter_node_origin,
                                                 &eb_world.config.node_ring_origin, &eb_world.config.node_direct_origin};
  return origins[which];
}

static eb_cache *read_cache(void) {
  eb_cache *const cache = calloc(1, sizeof *cache);
  size_t length;
  char *const text = eb_store_read(kept.folder, kept.identity.name, EB_CACHE_MAX_BYTES, &length);
  if (cache && (!text || !eb_cache_parse(text, length, kept.identity.text, cache))) memset(cache, 0, sizeof *cache);
  /* Where nobody replaces it, old is better than nothing. */
  if (cache && kept.is_renewable) eb_cache_expire(cache, kept.begun);
  free(text);
  return cache;
}

/* What the ranks that measure within nodes share, on rank 0; the others take part. */
static const char *describe_pair(const eb_pair *pair) {
  enum { TAG = 3, MAX_WORD = 16 };
  static char shared[MAX_WORD] = "none";
  cpu_set_t own, others;
  if (sched_getaffinity(0, sizeof own, &own) != 0) CPU_ZERO(&own);
  if (eb_domain.rank == pair->second) PMPI_Send(&own, sizeof own, MPI_BYTE, pair->first, TAG, eb_domain.comm);
  if (eb_domain.rank == pair->first) {
    PMPI_Recv(&others, sizeof others, MPI_BYTE, pair->second, TAG, eb_domain.comm, MPI_STATUS_IGNORE);
    snprintf(shared, sizeof shared, "%s", eb_placement_shared(EB_PLACEMENT_ROOT, &own, &others));
    if (pair->first != 0) PMPI_Send(shared, sizeof shared, MPI_BYTE, 0, TAG, eb_domain.comm);
  } else if (eb_domain.rank == 0) {
    PMPI_Recv(shared, sizeof shared, MPI_BYTE, pair->first, TAG, eb_domain.comm, MPI_STATUS_IGNORE);
  }
  return shared;
}

/* A run whose costs are stated depends on no other run, and others not on it. */
static void begin_of_root(const char *shared) {
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  const eb_config *const config = &eb_world.config;
  kept.is_on = config->intra_node_origin != EB_COST_STATED && config->inter_node_origin != EB_COST_STATED &&
               config->node_ring_origin != EB_COST_STATED && config->node_direct_origin != EB_COST_STATED &&
               eb_store_folder(config->cache, kept.folder) && PMPI_Get_library_version(mpi, &length) == MPI_SUCCESS;
  if (!kept.is_on) return;
  eb_identity_of(&(eb_run){mpi, eb_world.multiple, config->progress_thread, eb_world.is_crowded, config->num_lanes,
                           config->node_path, shared},
                 &kept.identity);
  kept.is_renewable = eb_store_is_writable(kept.folder);
  kept.cache = read_cache();
  kept.is_on = kept.cache != NULL;
}

static void fill_notice(notice *told) {
  for (int c = 0; c < EB_NUM_COSTS; c++) {
    told->costs[c] = *cost_of(c);
    told->origins[c] = *origin_of(c);
    told->is_to_measure[c] = told->origins[c] != EB_COST_STATED;
    const eb_kept_cost *const cost = kept.cache ? &kept.cache->costs[c] : NULL;
    if (!cost || cost->cost.num == 0) continue;
    told->costs[c] = cost->cost;
    told->origins[c] = EB_COST_KEPT;
    told->is_to_measure[c] = kept.is_renewable && eb_kept_cost_is_due(cost, kept.begun);
  }
  told->is_thorough = kept.is_on;
  told->num_results = kept.cache ? kept.cache->num_results : 0;
}

static void share_results(int num) {
  eb_kept_result *const results = eb_domain.rank == 0 ? kept.cache->results : malloc((size_t)num * sizeof *results);
  if (!results) eb_abort(EB_NO_MEMORY);
  PMPI_Bcast(results, num * (int)sizeof *results, MPI_BYTE, 0, eb_domain.comm);
  for (int r = 0; r < num; r++) {
    const eb_kept_result *const from = &results[r];
    eb_learned_add(&(eb_learned_result){from->level == EB_INTER_NODE,
                                        from->paths,
                                        from->num_partitions,
                                        from->total_bytes,
                                        {from->first_s, from->half_s},
                                        from->cut,
                                        from->won_s,
                                        true});
  }
  if (eb_domain.rank != 0) free(results);
}

/* Rank 0 decides whether to believe what was measured. */
static void measure(int which, const eb_pair *pair, bool is_thorough) {
  eb_calibration calibration;
  const eb_path path = which == EB_RING ? EB_PATH_RING : which == EB_DIRECT ? EB_PATH_DIRECT : EB_PATH_MESSAGE;
  eb_calibrate(pair, path, is_thorough, &calibration);
  if (calibration.cost.num == 0) return; /* nobody could */
  *cost_of(which) = calibration.cost;
  *origin_of(which) = EB_COST_MEASURED;
  if (kept.cache) {
    const eb_kept_cost measured = {calibration.cost, kept.begun, kept.begun, calibration.is_steady, false};
    eb_kept_cost *const cost = &kept.cache->costs[which];
    eb_kept_cost_renew(cost, &measured);
    if (cost->measured != kept.begun) *origin_of(which) = EB_COST_KEPT;
    *cost_of(which) = cost->cost;
    kept.has_news = true;
  }
  PMPI_Bcast(cost_of(which), sizeof(eb_cost), MPI_BYTE, 0, eb_domain.comm);
}

/* Is it what was read? */
static bool is_known(const eb_kept_result *result) {
  for (int r = 0; r < kept.cache->num_results; r++)
    if (eb_kept_result_is_alike(kept.cache, &kept.cache->results[r], result) &&
        eb_cut_equal(&kept.cache->results[r].cut, &result->cut))
      return true;
  return false;
}

static bool add_results(eb_cache *cache) {
  bool has_news = false;
  eb_learned_result *const learned = malloc(EB_CACHE_MAX_RESULTS * sizeof *learned);
  const int num = learned ? eb_learned_list(learned, EB_CACHE_MAX_RESULTS) : 0;
  for (int r = 0; r < num; r++) {
    const eb_learned_result *const from = &learned[r];
    eb_kept_result result = {from->is_inter_node ? EB_INTER_NODE : EB_INTRA_NODE,
                             from->num_partitions,
                             from->paths,
                             from->total_bytes,
                             from->seen.first_s,
                             from->seen.half_s,
                             from->won_s,
                             (int64_t)time(NULL),
                             from->cut};
    if (from->cut.num == 0 || is_known(&result)) continue;
    eb_cache_add(cache, &result);
    has_news = true;
  }
  free(learned);
  return has_news;
}

/* Adds what this rank has found to what is in the file by now. True if there is something to keep. */
static bool add_news(eb_cache *cache) {
  for (int c = 0; c < EB_NUM_COSTS; c++)
    if (cache->costs[c].tried <= kept.cache->costs[c].tried) cache->costs[c] = kept.cache->costs[c];
  const bool has_results = add_results(cache); /* by these costs */
  return has_results || kept.has_news;
}

/* Rank 0 keeps what is new. */
static void keep(void) {
  static char remark[EB_STORE_MAX_PATH + 200];
  /* Another job may have written since this one began. */
  eb_cache *const cache = read_cache();
  char *const text = malloc(EB_CACHE_MAX_BYTES);
  const char *reason = NULL;
  if (!cache || !text) reason = "out of memory";
  else if (add_news(cache))
    reason = eb_store_write(kept.folder, kept.identity.name, text, eb_cache_print(cache, kept.identity.text, text), MAX_FILES);
  free(text);
  free(cache);
  if (!reason) return;
  snprintf(remark, sizeof remark, "what this run learned was not kept in %s: %s; set EARLYBIRD_CACHE to another folder, or to off",
           kept.folder, reason);
  kept.remark = remark;
}

void eb_persistence_begin(void) {
  notice told = {0};
  eb_pair pairs[EB_NUM_COSTS];
  bool has_pair[EB_NUM_COSTS];
  for (int level = 0; level < EB_NUM_LEVELS; level++) has_pair[level] = eb_calibrate_pair(level == EB_INTER_NODE, &pairs[level]);
  pairs[EB_RING] = pairs[EB_DIRECT] = pairs[EB_INTRA_NODE];
  /* Stated costs are those of messages: nothing is measured to compare them with. */
  has_pair[EB_RING] = has_pair[EB_DIRECT] = has_pair[EB_INTRA_NODE] && eb_world.config.node_path == EB_NODE_AUTO &&
                                            eb_world.config.intra_node_origin != EB_COST_STATED;
  const char *const shared = has_pair[EB_INTRA_NODE] ? describe_pair(&pairs[EB_INTRA_NODE]) : "none";
  kept.begun = (int64_t)time(NULL);
  if (eb_domain.rank == 0) {
    begin_of_root(shared);
    fill_notice(&told);
  }
  PMPI_Bcast(&told, sizeof told, MPI_BYTE, 0, eb_domain.comm);
  if (told.num_results > 0) share_results(told.num_results);
  for (int c = 0; c < EB_NUM_COSTS; c++) {
    *cost_of(c) = told.costs[c];
    *origin_of(c) = told.origins[c];
    if (told.is_to_measure[c] && has_pair[c]) measure(c, &pairs[c], told.is_thorough);
  }
  /* At once: the process may end in any way, and which ranks transfer something does not matter. */
  if (kept.is_on && kept.has_news) keep();
  kept.has_news = false;
}

const char *eb_persistence_end(void) {
  if (kept.is_on) keep();
  free(kept.cache);
  kept.cache = NULL;
  kept.is_on = false;
  return kept.remark;
}
