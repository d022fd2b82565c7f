/* Reads the environment and the cores of a rank. */
#include "recorder/recording/settings.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CORES = 8192, LONGEST_VALUE = 4096 };

/* What may be a user's. What launchers and `earlybird record` itself tell their ranks is among it: whoever reads leaves that out. */
static bool is_setting(const char *variable) {
  static const char *const prefixes[] = {"MPIR_",  "MPICH_", "OMPI_MCA_",  "PRTE_MCA_",       "PMIX_MCA_", "I_MPI_",
                                         "HYDRA_", "UCX_",   "FI_",        "PSM2_",           "PSM3_",     "OMP_",
                                         "KMP_",   "GOMP_",  "LD_PRELOAD", "LD_LIBRARY_PATH", "EARLYBIRD_"};
  for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0]; p++)
    if (strncmp(variable, prefixes[p], strlen(prefixes[p])) == 0) return true;
  return false;
}

static void print_variables(eb_payload *payload) {
  char name[256];
  const char *comma = "";
  eb_payload_print(payload, ",\"settings\":{");
  for (char **variable = environ; variable && *variable; variable++) {
    const char *equals = strchr(*variable, '=');
    if (!equals || !is_setting(*variable) || (size_t)(equals - *variable) >= sizeof name || strlen(equals) > LONGEST_VALUE)
      continue;
    snprintf(name, sizeof name, "%.*s", (int)(equals - *variable), *variable);
    eb_payload_print(payload, "%s", comma);
    eb_payload_string(payload, name);
    eb_payload_print(payload, ":");
    eb_payload_string(payload, equals + 1);
    comma = ",";
  }
  eb_payload_print(payload, "}");
}

static void print_cores(eb_payload *payload) {
  static cpu_set_t cores[MAX_CORES / CPU_SETSIZE];
  const char *comma = "";
  if (sched_getaffinity(0, sizeof cores, cores) != 0) return;
  eb_payload_print(payload, ",\"binding\":[");
  for (int c = 0; c < MAX_CORES; c++) {
    if (!CPU_ISSET_S(c, sizeof cores, cores)) continue;
    eb_payload_print(payload, "%s%d", comma, c);
    comma = ",";
  }
  eb_payload_print(payload, "]");
}

/* As text: the numbers of the program's locale may have commas. */
static void print_load(eb_payload *payload) {
  char load[3][16];
  FILE *file = fopen("/proc/loadavg", "r");
  if (!file) return;
  if (fscanf(file, "%15[0-9.] %15[0-9.] %15[0-9.]", load[0], load[1], load[2]) == 3)
    eb_payload_print(payload, ",\"load\":[%s,%s,%s]", load[0], load[1], load[2]);
  fclose(file);
}

void eb_settings_print(eb_payload *payload) {
  print_variables(payload);
  print_cores(payload);
  print_load(payload);
}

/* Slurm's counts of all nodes, such as 4(x2),3: the largest. */
static uint64_t largest_count(const char *text) {
  unsigned long long largest = 0;
  while (text && *text) {
    const unsigned long long count = strtoull(text, NULL, 10);
    if (count > largest) largest = count;
    text = strchr(text, ',');
    if (text) text++;
  }
  return largest;
}

uint64_t eb_settings_num_local(uint64_t num_ranks) {
  static const char *const variables[] = {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "PALS_LOCAL_SIZE",
                                          "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"};
  for (size_t v = 0; v < sizeof variables / sizeof variables[0]; v++) {
    const uint64_t num = largest_count(getenv(variables[v]));
    if (num > 0) return num < num_ranks ? num : num_ranks;
  }
  return num_ranks;
}
