/* The process managers' key-value stores: PMI-1 (Hydra of MPICH, Intel MPI and derivatives) and PMIx (Open MPI's PRRTE, others). */
#include "partitioned/domain/registry.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "partitioned/process/world.h"

/* Raised whenever messages between ranks change, so that two versions of the library ignore each other. */
#define PROTOCOL "earlybird-6"

static bool wants_to_publish; /* where the MPI starts its PMIx client itself */
static bool has_published;
static bool is_pmix_running;

/* ---- PMI-1: lines of key=value over an inherited descriptor. The MPI speaks the same before and after us, and the
 * process manager answers line by line, so both may use it in turn. ---- */

static int pmi_fd = -1;
static char pmi_store[256]; /* the name of the job's key-value store */

/* Hydra alone: other process managers may speak another version on the same descriptor, and would end the job. And only for an
 * MPI that speaks with it, too: Hydra ends a job of which a process has begun to speak and does not take its leave. */
static bool is_hydra(void) {
  if (eb_is_open_mpi()) return false;
  const char *version = getenv("MPIR_CVAR_PMI_VERSION"), *intel = getenv("I_MPI_PMI");
  return getenv("PMI_FD") && getenv("PMI_RANK") && getenv("MPI_LOCALNRANKS") && !getenv("I_MPI_PMI_LIBRARY") &&
         (!version || strcmp(version, "1") == 0) && (!intel || strcmp(intel, "pmi1") == 0);
}

static bool send_line(const char *line) {
  for (size_t left = strlen(line); left > 0;) {
    const ssize_t sent = send(pmi_fd, line, left, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    line += sent;
    left -= (size_t)sent;
  }
  return true;
}

/* Byte by byte, because what follows the line is the MPI's. */
static bool receive_line(char *line, size_t size) {
  for (size_t at = 0; at + 1 < size; at++) {
    ssize_t received;
    while ((received = read(pmi_fd, line + at, 1)) < 0 && errno == EINTR) continue;
    if (received != 1) return false;
    if (line[at] != '\n') continue;
    line[at] = '\0';
    return true;
  }
  return false;
}

/* Asks and expects an answer of one kind. */
static bool ask(const char *question, const char *kind, char *answer, size_t size) {
  return send_line(question) && receive_line(answer, size) && strncmp(answer, "cmd=", 4) == 0 &&
         strncmp(answer + 4, kind, strlen(kind)) == 0;
}

static bool value_of(const char *line, const char *key, char *value, size_t size) {
  char wanted[32];
  snprintf(wanted, sizeof wanted, " %s=", key);
  const char *at = strstr(line, wanted);
  if (!at) return false;
  at += strlen(wanted);
  const size_t length = strcspn(at, " ");
  if (length >= size) return false;
  memcpy(value, at, length);
  value[length] = '\0';
  return true;
}

static void publish_by_pmi(void) {
  char line[1024], status[16];
  struct stat about;
  pmi_fd = (int)strtol(getenv("PMI_FD"), NULL, 10);
  /* An outer launcher's descriptor may have been closed, and its number be another file's. */
  if (fstat(pmi_fd, &about) != 0 || !S_ISSOCK(about.st_mode)) return;
  if (ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", line, sizeof line) &&
      ask("cmd=get_my_kvsname\n", "my_kvsname", line, sizeof line) && value_of(line, "kvsname", pmi_store, sizeof pmi_store)) {
    snprintf(line, sizeof line, "cmd=put kvsname=%s key=earlybird-%s value=%s\n", pmi_store, getenv("PMI_RANK"), PROTOCOL);
    has_published = ask(line, "put_result", line, sizeof line) && value_of(line, "rc", status, sizeof status) &&
                    strcmp(status, "0") == 0;
  }
}

static bool has_by_pmi(int rank) {
  char line[1024], value[64];
  snprintf(line, sizeof line, "cmd=get kvsname=%s key=earlybird-%d\n", pmi_store, rank);
  if (!ask(line, "get_result", line, sizeof line))
    eb_abort("the process manager stopped answering on PMI_FD while other ranks wait for this rank; run the job with "
             "EARLYBIRD_OFF=1");
  return value_of(line, "value", value, sizeof value) && strcmp(value, PROTOCOL) == 0;
}

/* ---- PMIx: a library that the MPI brings along. Declared here, because its header need not be installed; the layouts
 * are those of the PMIx standard, which no version has changed. ---- */

typedef struct {
  char name_space[256];
  uint32_t rank;
} pmix_process;

typedef struct {
  uint16_t type;
  union {
    char *string;
    bool flag;
    char room[24];
  } data;
} pmix_value;

typedef struct {
  char key[512];
  uint32_t flags;
  pmix_value value;
} pmix_info;

enum { PMIX_TYPE_BOOL = 1, PMIX_TYPE_STRING = 3, PMIX_SCOPE_GLOBAL = 3 };

typedef int pmix_init_fn(pmix_process *, pmix_info *, size_t);
typedef int pmix_put_fn(uint8_t, const char *, pmix_value *);
typedef int pmix_get_fn(const pmix_process *, const char *, const pmix_info *, size_t, pmix_value **);

static pmix_process pmix_self;
static void *pmix_library;

static int find_pmix(struct dl_phdr_info *info, size_t size, void *path) {
  (void)size;
  const char *name = strrchr(info->dlpi_name, '/');
  if (!name || strncmp(name, "/libpmix.so", 11) != 0) return 0;
  *(const char **)path = info->dlpi_name;
  return 1;
}

/* One of PMIx's own functions, also where PMIx was loaded for the MPI alone, or for the caller, and is not visible to us. */
static void *pmix_function(const char *name, const void *caller) {
  void *found = dlsym(RTLD_NEXT, name);
  const char *path = NULL;
  Dl_info info;
  if (found) return found;
  if (!pmix_library && dl_iterate_phdr(find_pmix, &path)) pmix_library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (!pmix_library && caller && dladdr(caller, &info)) pmix_library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return pmix_library ? dlsym(pmix_library, name) : NULL;
}

/* The MPI initialises PMIx in its own way, and a client that was initialised before it breaks Open MPI 5.0.11; so we
 * publish as soon as the MPI has done that, and the MPI commits it with what it publishes itself. */
__attribute__((visibility("default"))) int PMIx_Init(pmix_process *process, pmix_info *info, size_t num_info) {
  enum { PMIX_ERROR = -1 };
  pmix_init_fn *theirs = (pmix_init_fn *)pmix_function("PMIx_Init", __builtin_return_address(0));
  if (!theirs) return PMIX_ERROR;
  const int rc = theirs(process, info, num_info);
  pmix_put_fn *put = (pmix_put_fn *)pmix_function("PMIx_Put", NULL);
  is_pmix_running = is_pmix_running || rc == 0;
  if (rc != 0 || !process || !put || !wants_to_publish || has_published) return rc;
  char text[] = PROTOCOL;
  pmix_value value = {.type = PMIX_TYPE_STRING, .data.string = text};
  pmix_self = *process;
  has_published = put(PMIX_SCOPE_GLOBAL, "earlybird", &value) == 0;
  return rc;
}

static bool has_by_pmix(int rank) {
  pmix_get_fn *get = (pmix_get_fn *)pmix_function("PMIx_Get", NULL);
  pmix_process other = pmix_self;
  /* Without it the question would wait for a rank that has nothing to say. */
  const pmix_info at_once = {.key = "pmix.immed", .value = {.type = PMIX_TYPE_BOOL, .data.flag = true}};
  pmix_value *value = NULL;
  other.rank = (uint32_t)rank;
  if (!get || get(&other, "earlybird", &at_once, 1, &value) != 0 || !value) return false;
  const bool same = value->type == PMIX_TYPE_STRING && value->data.string && strcmp(value->data.string, PROTOCOL) == 0;
  if (value->type == PMIX_TYPE_STRING) free(value->data.string);
  free(value);
  return same;
}

/* Open MPI may be configured to start without the exchange, or to leave each rank's data where it is. */
static bool starts_without_exchange(void) {
  static const char *const variables[] = {"OMPI_MCA_pmix_base_async_modex", "OMPI_MCA_async_mpi_init",
                                          "OMPI_MCA_pmix_base_collect_data"};
  for (size_t v = 0; v < sizeof variables / sizeof *variables; v++)
    if (getenv(variables[v])) return true;
  return false;
}

void eb_registry_publish(void) {
  if (starts_without_exchange()) return;
  wants_to_publish = true;
  if (is_hydra()) publish_by_pmi();
}

bool eb_registry_is_there(void) { return is_pmix_running || is_hydra(); }

bool eb_registry_has_published(void) { return has_published; }

/* PMIx has the rank's own value in any case, and Open MPI always begins the exchange. */
bool eb_registry_is_readable(int own_rank) { return !pmi_store[0] || has_by_pmi(own_rank); }

bool eb_registry_has(int rank) { return pmi_store[0] ? has_by_pmi(rank) : has_by_pmix(rank); }
