/* The environment of libearlybird, one NAME=VALUE per line of the input, and info values of the same text: refused in one
 * sentence, or a configuration whose values are in range. */
#include "partitioned/process/config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/earlybird.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {EARLYBIRD_ENV_SEGMENTS, EARLYBIRD_ENV_AGGR_SIZE, EARLYBIRD_ENV_PROGRESS_THREAD,
                                    EARLYBIRD_ENV_STATS,    EARLYBIRD_ENV_TAG_BITS,  EARLYBIRD_ENV_LANES,
                                    EARLYBIRD_ENV_COSTS,    EARLYBIRD_ENV_TRACE,     EARLYBIRD_ENV_CACHE};
enum { NUM_NAMES = sizeof names / sizeof *names };

/* Stands in for the MPI: the value of every key is that of an environment variable, cut to the given length. */
int PMPI_Info_get(MPI_Info info, const char *key, int length, char *value, int *flag) {
  (void)info;
  const char *text = getenv(strcmp(key, EARLYBIRD_INFO_SEGMENTS) == 0 ? EARLYBIRD_ENV_SEGMENTS : EARLYBIRD_ENV_AGGR_SIZE);
  *flag = text != NULL;
  if (text) snprintf(value, (size_t)length + 1, "%s", text);
  return MPI_SUCCESS;
}

static void set_environment(char *text) {
  for (int n = 0; n < NUM_NAMES; n++) unsetenv(names[n]);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    char *value = strchr(line, '=');
    for (int n = 0; value && n < NUM_NAMES; n++)
      if (strncmp(line, names[n], strlen(names[n])) == 0 && line + strlen(names[n]) == value) setenv(names[n], value + 1, 1);
  }
}

static void check(const eb_config *config) {
  if (config->num_lanes < 1 || config->num_lanes > EB_MAX_LANES || config->tag_bits < 0 || config->tag_bits > 31) abort();
  if (memchr(config->cache, '\0', sizeof config->cache) == NULL) abort();
  if (memchr(config->trace, '\0', sizeof config->trace) == NULL) abort();
  const MPI_Info some = (MPI_Info)(intptr_t)1;
  const eb_mode modes[] = {config->mode, eb_config_mode(config, some)};
  for (int m = 0; m < 2; m++) {
    if (modes[m].kind != EB_AUTO && modes[m].kind != EB_PER_PARTITION && modes[m].value < 1) abort();
    const int64_t step_bytes = eb_mode_step_bytes(modes[m], 7, 1000);
    if (modes[m].kind == EB_AUTO ? step_bytes != 0 : step_bytes < 1000 || step_bytes > 7000) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  eb_config config;
  char problem[400] = "";
  char *text = malloc(size + 1);
  if (!text) return 0;
  if (size > 0) memcpy(text, data, size);
  text[size] = '\0';
  set_environment(text);
  free(text);
  eb_config_note_key(EARLYBIRD_INFO_SEGMENTS);
  if (eb_config_read(&config, problem, sizeof problem)) check(&config);
  else if (problem[0] == '\0') abort();
  (void)eb_config_wants_progress_thread();
  return 0;
}
