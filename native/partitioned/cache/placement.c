/* Reads from the kernel's files which cores belong together. */
#include "partitioned/cache/placement.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Reads "0-3,8"; false if there is no such list. */
static bool read_cores(const char *root, int core, const char *file, cpu_set_t *cores) {
  char path[512], text[4096];
  snprintf(path, sizeof path, "%s/cpu%d/%s", root, core, file);
  FILE *const stream = fopen(path, "re");
  const bool is_read = stream && fgets(text, sizeof text, stream);
  if (stream) fclose(stream);
  if (!is_read) return false;
  CPU_ZERO(cores);
  for (const char *at = text; *at >= '0' && *at <= '9';) {
    char *end;
    const long first = strtol(at, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
    for (long c = first; c <= last && c < CPU_SETSIZE; c++) CPU_SET((size_t)c, cores);
    at = *end == ',' ? end + 1 : end;
  }
  return CPU_COUNT(cores) > 0;
}

static int first_of(const cpu_set_t *cores) {
  int core = 0;
  while (core < CPU_SETSIZE && !CPU_ISSET((size_t)core, cores)) core++;
  return core;
}

static bool is_within(const cpu_set_t *part, const cpu_set_t *whole) {
  cpu_set_t common;
  CPU_AND(&common, part, whole);
  return CPU_EQUAL(&common, part);
}

#define SOCKET "topology/core_siblings_list"

static bool has_one_socket(const char *root, const cpu_set_t *cores) {
  cpu_set_t socket;
  return read_cores(root, first_of(cores), SOCKET, &socket) && is_within(cores, &socket);
}

const char *eb_placement_shared(const char *root, const cpu_set_t *a, const cpu_set_t *b) {
  static const struct {
    const char *name, *file;
  } parts[] = {{"core", "topology/thread_siblings_list"},
               {"cache", "cache/index3/shared_cpu_list"},
               {"cache", "cache/index2/shared_cpu_list"}, /* where there is no third level */
               {"socket", SOCKET}};
  cpu_set_t both, part;
  CPU_OR(&both, a, b);
  bool is_known = false;
  for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
    if (!read_cores(root, first_of(&both), parts[p].file, &part)) continue;
    is_known = true;
    if (is_within(&both, &part)) return parts[p].name;
  }
  if (!is_known) return "unknown";
  return has_one_socket(root, a) && has_one_socket(root, b) ? "sockets" : "any";
}
