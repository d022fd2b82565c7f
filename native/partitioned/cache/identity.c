/* Describes the machine and the settings of this process. */
#include "partitioned/cache/identity.h"

#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "partitioned/cache/store.h"

extern char **environ; /* NOLINT(readability-redundant-declaration): declared by GNU's unistd.h only */

/* ---- The machine ---- */

enum { MAX_TEXT = 256, MAX_MACHINE = 400 };

/* The first line of a file without its end; empty if there is none. */
static void read_line(const char *path, char *line, size_t size) {
  FILE *const file = fopen(path, "re");
  line[0] = '\0';
  if (!file) return;
  if (!fgets(line, (int)size, file)) line[0] = '\0';
  line[strcspn(line, "\n")] = '\0';
  fclose(file);
}

/* Appends ", " and text, as far as it fits. */
static void append(char *to, size_t size, const char *text) {
  const size_t length = strlen(to);
  if (*text) snprintf(to + length, size - length, "%s%s", length ? ", " : "", text);
}

/* What /proc/cpuinfo says of the first processor: its model, and whether it is virtual. Not its frequency, which changes. */
static void append_processor(char *machine, size_t size) {
  static const char *const keys[] = {"vendor_id", "cpu family",      "model",       "model name", "stepping",
                                     "cpu",       "CPU implementer", "CPU variant", "CPU part",   "CPU revision"};
  char line[4096];
  FILE *const file = fopen("/proc/cpuinfo", "re");
  bool is_virtual = false;
  while (file && fgets(line, sizeof line, file) && line[0] != '\n') {
    char *const colon = strchr(line, ':');
    if (!colon) continue;
    char *const value = colon + 1 + strspn(colon + 1, " \t");
    size_t length = (size_t)(colon - line);
    while (length > 0 && isspace((unsigned char)line[length - 1])) length--;
    line[length] = '\0';
    value[strcspn(value, "\n")] = '\0';
    if (strcmp(line, "flags") == 0) is_virtual = strstr(value, " hypervisor") != NULL;
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
      if (strcmp(line, keys[k]) == 0) append(machine, size, value);
  }
  if (file) fclose(file);
  if (is_virtual) append(machine, size, "virtual");
}

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

/* The given attribute of every device of a class, in order; not their names, which differ between equal nodes. */
static void append_devices(const char *class, const char *attribute, char *machine, size_t size) {
  enum { MAX_DEVICES = 16, MAX_VALUE = 64 };
  char values[MAX_DEVICES][MAX_VALUE], path[512];
  int num = 0;
  DIR *const folder = opendir(class);
  for (const struct dirent *entry; folder && num < MAX_DEVICES && (entry = readdir(folder));) {
    /* Bridges, tunnels and the like have no device; a link that is down reports no speed, or -1. */
    snprintf(path, sizeof path, "%s/%s/device", class, entry->d_name);
    if (entry->d_name[0] == '.' || access(path, F_OK) != 0) continue;
    snprintf(path, sizeof path, "%s/%s/%s", class, entry->d_name, attribute);
    read_line(path, values[num], MAX_VALUE);
    if (values[num][0] && values[num][0] != '-') num++;
  }
  if (folder) closedir(folder);
  qsort(values, (size_t)num, MAX_VALUE, by_text);
  for (int d = 0; d < num; d++) append(machine, size, values[d]);
}

/* Two kinds of nodes of a cluster differ in this, and equal nodes do not: no host name, address or serial number. */
static void describe_machine(char *machine, size_t size) {
  struct utsname system;
  char line[MAX_TEXT], cores[32];
  machine[0] = '\0';
  if (uname(&system) == 0) append(machine, size, system.machine);
  append_processor(machine, size);
  snprintf(cores, sizeof cores, "%ld processors", sysconf(_SC_NPROCESSORS_CONF));
  append(machine, size, cores);
  read_line("/sys/devices/system/node/possible", line, sizeof line);
  append(machine, size, line);
  read_line("/sys/devices/system/cpu/cpu0/cache/index3/size", line, sizeof line);
  append(machine, size, line);
  append_devices("/sys/class/infiniband", "hca_type", machine, size);
  append_devices("/sys/class/infiniband", "ports/1/rate", machine, size);
  append_devices("/sys/class/net", "speed", machine, size);
}

/* ---- The settings ---- */

static bool begins_with(const char *text, const char *const *prefixes) {
  for (; *prefixes; prefixes++)
    if (strncmp(text, *prefixes, strlen(*prefixes)) == 0) return true;
  return false;
}

/* Does a variable choose how an MPI sends messages? Launchers add variables of such names that describe the job: its
 * ranks, and the names of its nodes. */
static bool is_setting(const char *variable) {
  static const char *const settings[] = {"MPIR_CVAR_", "MPIR_PARAM_", "MPICH_", "I_MPI_", "OMPI_MCA_", "PMIX_MCA_", "UCX_",
                                         "FI_",        "PSM2_",       "PSM3_",  "MV2_",   "MVP_",      "PSP_",      NULL};
  static const char *const of_the_job[] = {"I_MPI_HYDRA_",
                                           "I_MPI_INFO_",
                                           "I_MPI_PIN_INFO=",
                                           "I_MPI_PIN_MAPPING=",
                                           "I_MPI_MPIRUN",
                                           "I_MPI_RETURN_WIN_MEM_NUMA=",
                                           "I_MPI_DEBUG",
                                           "I_MPI_JOB_",
                                           "I_MPI_PERHOST=",
                                           "OMPI_MCA_PREFIXES=",
                                           "OMPI_MCA_orte",
                                           "OMPI_MCA_ess_",
                                           "OMPI_MCA_pmix",
                                           "OMPI_MCA_prte",
                                           "OMPI_MCA_plm_",
                                           "OMPI_MCA_rmaps_",
                                           "OMPI_MCA_ras_",
                                           "OMPI_MCA_initial_wdir=",
                                           "OMPI_MCA_num_procs=",
                                           "MPICH_VERSION",
                                           "MPICH_DIR=",
                                           "MPICH_INTERFACE_HOSTNAME",
                                           "MPIR_CVAR_CH3_INTERFACE_HOSTNAME",
                                           "MPIR_PARAM_CH3_INTERFACE_HOSTNAME",
                                           "MV2_COMM_WORLD_",
                                           "MVP_COMM_WORLD_",
                                           NULL};
  return begins_with(variable, settings) && !begins_with(variable, of_the_job);
}

/* The sum of hashes does not depend on the order of the variables. */
static uint64_t hash_settings(void) {
  uint64_t sum = 0;
  for (char **variable = environ; variable && *variable; variable++)
    if (is_setting(*variable)) sum += eb_cache_hash(*variable, strlen(*variable));
  return sum;
}

int eb_identity_num_cores(void) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* ---- Text and name ---- */

/* One line, of characters that print. */
static void clean(const char *text, char *line, size_t size) {
  size_t at = 0;
  for (; *text && at + 1 < size; text++) {
    const bool is_space = isspace((unsigned char)*text);
    if (is_space && (at == 0 || line[at - 1] == ' ')) continue;
    line[at++] = (char)(is_space ? ' ' : *text >= ' ' && *text <= '~' ? *text : '?');
  }
  line[at] = '\0';
}

void eb_identity_prefix(const char *mpi, char *prefix) {
  enum { MAX_WORDS = 24 };
  char machine[MAX_MACHINE], words[MAX_WORDS + 1];
  int num = 0;
  for (const char *at = mpi; *at && num < MAX_WORDS; at++) {
    if (isalnum((unsigned char)*at) || *at == '.') words[num++] = (char)tolower((unsigned char)*at);
    else if (num > 0 && words[num - 1] != '-') words[num++] = '-';
  }
  words[num] = '\0';
  describe_machine(machine, sizeof machine);
  /* The whole text of the version: two builds of a release, with different transports, have their own files. */
  const uint64_t hash = eb_cache_hash(machine, strlen(machine)) + 31 * eb_cache_hash(mpi, strlen(mpi));
  snprintf(prefix, EB_IDENTITY_MAX_NAME, "%s-%016llx-", words, (unsigned long long)hash);
}

void eb_identity_of(const eb_run *run, eb_identity *identity) {
  char machine[MAX_MACHINE], line[MAX_MACHINE], mpi[MAX_TEXT], settings[MAX_TEXT];
  describe_machine(machine, sizeof machine);
  clean(machine, line, sizeof line);
  clean(run->mpi, mpi, sizeof mpi);
  snprintf(settings, sizeof settings, "cores=%d crowded=%d shared=%s threads=%d lanes=%d path=%d variables=%016llx",
           eb_identity_num_cores(), run->is_crowded, run->shared, run->is_multiple + run->has_progress_thread, run->num_lanes,
           run->node_path, (unsigned long long)hash_settings());
  snprintf(identity->text, sizeof identity->text, "machine %s\nmpi %s\nsettings %s\n", line, mpi, settings);
  eb_identity_prefix(run->mpi, identity->name);
  const size_t length = strlen(identity->name);
  snprintf(identity->name + length, sizeof identity->name - length, "%016llx" EB_STORE_SUFFIX,
           (unsigned long long)eb_cache_hash(settings, strlen(settings)));
}
