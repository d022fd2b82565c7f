/* Reads environment variables and info keys. */
#include "partitioned/process/config.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/earlybird.h"
#include "partitioned/tags/tags.h"

#define DEFAULT_NODE_BYTES (INT64_C(64) << 20)
#define DEFAULT_PAIR_BYTES (INT64_C(1) << 20)
#define MAX_NODE_BYTES (INT64_C(1) << 40)

static bool read_whole(const char *text, int64_t least, int64_t most, int64_t *value) {
  char *end;
  errno = 0;
  const long long read = strtoll(text, &end, 10);
  if (end == text || *end != '\0' || errno || read < least || read > most) return false;
  *value = read;
  return true;
}

static bool read_segments(const char *text, eb_mode *mode) {
  int64_t number;
  if (strcmp(text, "auto") == 0) *mode = (eb_mode){EB_AUTO, 0};
  else if (strcmp(text, "partition") == 0) *mode = (eb_mode){EB_PER_PARTITION, 0};
  else if (read_whole(text, 1, 1 << 20, &number)) *mode = (eb_mode){EB_NUMBER, number};
  else return false;
  return true;
}

static bool read_aggregate(const char *text, eb_mode *mode) {
  int64_t bytes;
  if (!read_whole(text, 1, INT64_MAX / 2, &bytes)) return false;
  *mode = (eb_mode){EB_AGGREGATE, bytes};
  return true;
}

static bool read_switch(const char *text, bool *on) {
  if (strcmp(text, "1") != 0 && strcmp(text, "0") != 0) return false;
  *on = text[0] == '1';
  return true;
}

static bool read_node_path(const char *text, eb_node_path *path) {
  if (strcmp(text, "auto") == 0) *path = EB_NODE_AUTO;
  else if (strcmp(text, "off") == 0) *path = EB_NODE_OFF;
  else if (strcmp(text, "ring") == 0) *path = EB_NODE_RING;
  else if (strcmp(text, "direct") == 0) *path = EB_NODE_DIRECT;
  else return false;
  return true;
}

/* "intra_node_protocols=... inter_node_protocols=...", separated by blanks; unknown keys belong to other versions. */
static bool read_costs(const char *text, eb_config *config) {
  while (*(text += strspn(text, " \t\n"))) {
    const size_t length = strcspn(text, " \t\n");
    const char *value = memchr(text, '=', length);
    if (!value) return false;
    const size_t key_length = (size_t)(value - text);
    const int value_length = (int)(length - key_length - 1);
    const struct {
      const char *key;
      eb_cost *cost;
      eb_cost_origin *origin;
    } known[] = {{"intra_node_protocols", &config->intra_node, &config->intra_node_origin},
                 {"inter_node_protocols", &config->inter_node, &config->inter_node_origin},
                 {"node_ring_protocols", &config->node_ring, &config->node_ring_origin},
                 {"node_direct_protocols", &config->node_direct, &config->node_direct_origin}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
      if (key_length != strlen(known[k].key) || memcmp(text, known[k].key, key_length) != 0) continue;
      if (!eb_cost_parse(value + 1, value_length, known[k].cost)) return false;
      *known[k].origin = EB_COST_STATED;
    }
    text += length;
  }
  return true;
}

static const char *variable(const char *name) {
  const char *text = getenv(name);
  return text && *text ? text : NULL;
}

bool eb_config_wants_progress_thread(void) {
  const char *text = variable(EARLYBIRD_ENV_PROGRESS_THREAD);
  return text && strcmp(text, "1") == 0;
}

bool eb_config_read(eb_config *config, char *problem, int problem_size) {
  *config = (eb_config){.mode = {EB_AUTO, 0},
                        .num_lanes = 1,
                        .node_path = EB_NODE_PATH_DEFAULT,
                        .node_bytes = DEFAULT_NODE_BYTES,
                        .pair_bytes = DEFAULT_PAIR_BYTES};
  int64_t number;
  const char *name, *text, *allowed;
#define REFUSE_UNLESS(variable_name, reads, what) \
  if ((text = variable(name = variable_name)) && (allowed = what) && !(reads)) goto refused
  REFUSE_UNLESS(EARLYBIRD_ENV_SEGMENTS, read_segments(text, &config->mode), "auto, partition or a number of segments");
  REFUSE_UNLESS(EARLYBIRD_ENV_AGGR_SIZE, read_aggregate(text, &config->mode), "a number of bytes, such as 16384");
  REFUSE_UNLESS(EARLYBIRD_ENV_PROGRESS_THREAD, read_switch(text, &config->progress_thread), "0 or 1");
  REFUSE_UNLESS(EARLYBIRD_ENV_STATS, read_switch(text, &config->statistics), "0 or 1");
  REFUSE_UNLESS(EARLYBIRD_ENV_TAG_BITS, read_whole(text, EB_TAG_BITS_MIN, EB_TAG_BITS_MAX, &number), "15 to 31");
  if (text) config->tag_bits = (int)number;
  REFUSE_UNLESS(EARLYBIRD_ENV_LANES, read_whole(text, 1, EB_MAX_LANES, &number), "1 to 16");
  if (text) config->num_lanes = (int)number;
  REFUSE_UNLESS(EARLYBIRD_ENV_NODE_PATH, read_node_path(text, &config->node_path), "auto, off, ring or direct");
  REFUSE_UNLESS(EARLYBIRD_ENV_NODE_BYTES, read_whole(text, 0, MAX_NODE_BYTES, &config->node_bytes),
                "a number of bytes up to 1 TiB, such as 67108864");
  REFUSE_UNLESS(EARLYBIRD_ENV_PAIR_BYTES, read_whole(text, 0, MAX_NODE_BYTES, &config->pair_bytes),
                "a number of bytes up to 1 TiB, such as 1048576");
  REFUSE_UNLESS(EARLYBIRD_ENV_COSTS, read_costs(text, config),
                "intra_node_protocols=MIN:LATENCY_S:OVERHEAD_S:BANDWIDTH,... inter_node_protocols=...");
  REFUSE_UNLESS(EARLYBIRD_ENV_TRACE, strlen(text) < sizeof config->trace, "a path of fewer than 1024 characters");
  if (text) strcpy(config->trace, text);
  REFUSE_UNLESS(EARLYBIRD_ENV_CACHE, strlen(text) < sizeof config->cache,
                "off, or a folder whose path is shorter than 1024 characters");
  if (text) strcpy(config->cache, text);
#undef REFUSE_UNLESS
  return true;
refused:
  snprintf(problem, (size_t)problem_size, "%s is '%.200s'; set it to %s, or unset it", name, text, allowed);
  return false;
}

static atomic_bool has_keys;

void eb_config_note_key(const char *key) {
  static const char *const keys[] = {EARLYBIRD_INFO_SEGMENTS, EARLYBIRD_INFO_AGGR_SIZE, EARLYBIRD_INFO_LANES,
                                     EARLYBIRD_INFO_PARTITIONS_PER_THREAD};
  for (size_t k = 0; key && k < sizeof keys / sizeof *keys; k++)
    if (strcmp(key, keys[k]) == 0) has_keys = true;
}

/* False if the info has no such key, or is not to be read. MPI 4.1 section 10: what an implementation does not understand is
 * ignored. */
static bool read_key(MPI_Info info, const char *key, char *text, int text_size) {
  int is_there = 0;
  /* The MPIs' own calls do not read the info: programs with a handle that is freed, or was never set, run with them, but a read
   * ends the process (Open MPI) or calls the handler of MPI_COMM_SELF (MPICH). */
  if (info == MPI_INFO_NULL || !has_keys) return false;
  return PMPI_Info_get(info, key, text_size - 1, text, &is_there) == MPI_SUCCESS && is_there;
}

eb_mode eb_config_mode(const eb_config *config, MPI_Info info) {
  eb_mode mode = config->mode;
  char text[64];
  if (read_key(info, EARLYBIRD_INFO_SEGMENTS, text, sizeof text)) (void)read_segments(text, &mode);
  if (read_key(info, EARLYBIRD_INFO_AGGR_SIZE, text, sizeof text)) (void)read_aggregate(text, &mode);
  return mode;
}

eb_spread eb_config_spread(MPI_Info info, int num_partitions, int64_t partition_bytes) {
  eb_spread spread = {0};
  char text[64];
  int64_t number;
  if (read_key(info, EARLYBIRD_INFO_LANES, text, sizeof text) && read_whole(text, 1, EB_MAX_LANES, &number))
    spread.num_lanes = number;
  if (read_key(info, EARLYBIRD_INFO_PARTITIONS_PER_THREAD, text, sizeof text) && read_whole(text, 1, INT_MAX, &number))
    spread.block_bytes = (number < num_partitions ? number : num_partitions) * partition_bytes;
  return spread;
}

int64_t eb_mode_step_bytes(eb_mode mode, int num_partitions, int64_t partition_bytes) {
  int64_t partitions = 1; /* per segment */
  if (mode.kind == EB_AUTO) return 0;
  if (mode.kind == EB_NUMBER) partitions = (num_partitions + mode.value - 1) / mode.value;
  if (mode.kind == EB_AGGREGATE && partition_bytes > 0) partitions = mode.value / partition_bytes;
  if (mode.kind == EB_AGGREGATE && partition_bytes == 0) partitions = num_partitions;
  if (partitions < 1) partitions = 1;
  if (partitions > num_partitions) partitions = num_partitions;
  return partition_bytes > 0 ? partitions * partition_bytes : 1;
}
