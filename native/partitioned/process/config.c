/* Reads environment variables and info keys. */
#include "partitioned/process/config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/earlybird.h"
#include "partitioned/tags/tags.h"

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

/* "intra_node_protocols=... inter_node_protocols=...", separated by blanks; unknown keys belong to other versions. */
static bool read_costs(const char *text, eb_config *config) {
  while (*(text += strspn(text, " \t\n"))) {
    const size_t length = strcspn(text, " \t\n");
    const char *value = memchr(text, '=', length);
    if (!value) return false;
    const size_t key_length = (size_t)(value - text);
    const int value_length = (int)(length - key_length - 1);
    eb_cost *cost = NULL;
    if (key_length == 20 && memcmp(text, "intra_node_protocols", 20) == 0) cost = &config->intra_node;
    if (key_length == 20 && memcmp(text, "inter_node_protocols", 20) == 0) cost = &config->inter_node;
    if (cost && !eb_cost_parse(value + 1, value_length, cost)) return false;
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
  *config = (eb_config){.mode = {EB_AUTO, 0}, .num_lanes = 1};
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
  REFUSE_UNLESS(EARLYBIRD_ENV_COSTS, read_costs(text, config),
                "intra_node_protocols=MIN:LATENCY_S:OVERHEAD_S:BANDWIDTH,... inter_node_protocols=...");
  REFUSE_UNLESS(EARLYBIRD_ENV_TRACE, strlen(text) < sizeof config->trace, "a path of fewer than 1024 characters");
  if (text) strcpy(config->trace, text);
#undef REFUSE_UNLESS
  return true;
refused:
  snprintf(problem, (size_t)problem_size, "%s is '%.200s'; set it to %s, or unset it", name, text, allowed);
  return false;
}

static atomic_bool has_keys;

void eb_config_note_key(const char *key) {
  if (key && (strcmp(key, EARLYBIRD_INFO_SEGMENTS) == 0 || strcmp(key, EARLYBIRD_INFO_AGGR_SIZE) == 0)) has_keys = true;
}

eb_mode eb_config_mode(const eb_config *config, MPI_Info info) {
  eb_mode mode = config->mode;
  char text[64];
  int found;
  /* The MPIs' own calls do not read the info: programs with a handle that is freed, or was never set, run with them, but a read
   * ends the process (Open MPI) or calls the handler of MPI_COMM_SELF (MPICH). */
  if (info == MPI_INFO_NULL || !has_keys) return mode;
  /* MPI 4.1 section 10: an info value that an implementation does not understand is ignored. */
  if (PMPI_Info_get(info, EARLYBIRD_INFO_SEGMENTS, sizeof text - 1, text, &found) == MPI_SUCCESS && found)
    (void)read_segments(text, &mode);
  if (PMPI_Info_get(info, EARLYBIRD_INFO_AGGR_SIZE, sizeof text - 1, text, &found) == MPI_SUCCESS && found)
    (void)read_aggregate(text, &mode);
  return mode;
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
