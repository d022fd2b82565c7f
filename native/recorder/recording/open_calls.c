/* The page of the calls in which threads are. */
#include "recorder/recording/open_calls.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(eb_open_call) == 64 && sizeof(eb_open_calls_head) == sizeof(eb_open_call), "readers rely on it");

typedef struct {
  eb_open_calls_head head;
  eb_open_call calls[EB_OPEN_CALLS_MAX];
} page;

static page *calls; /* NULL: none */
static int unmapped = -1; /* the file of a page that is not mapped */
static char path[4096];

/* With its blocks, not only made longer: on a full disk a mapping without memory behind it would end the program. */
static page *map(int file) {
  if (posix_fallocate(file, 0, sizeof(page)) != 0) return NULL;
  void *at = mmap(NULL, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at != MAP_FAILED ? at : NULL;
}

void eb_open_calls_create(const char *name, bool is_mapped, double tick_s, uint64_t begin_ticks) {
  snprintf(path, sizeof path, "%s", name);
  const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return;
  page *at = is_mapped ? map(file) : calloc(1, sizeof *at);
  if (is_mapped || !at) close(file);
  else unmapped = file;
  if (!at) {
    (void)unlink(path);
    return;
  }
  at->head = (eb_open_calls_head){EB_OPEN_CALLS_MAGIC, EB_OPEN_CALLS_MAX, sizeof(eb_open_call), tick_s, begin_ticks, 0, {0}};
  __atomic_store_n(&calls, at, __ATOMIC_RELEASE);
}

void eb_open_calls_write(uint64_t now_ticks) {
  if (unmapped < 0) return;
  calls->head.written_ticks = now_ticks;
  if (pwrite(unmapped, calls, sizeof *calls, 0) == (ssize_t)sizeof *calls) return;
  (void)unlink(path); /* what it says is too old */
  close(unmapped);
  unmapped = -1;
}

eb_open_call *eb_open_call_of(uint32_t thread) {
  page *const at = __atomic_load_n(&calls, __ATOMIC_ACQUIRE);
  return at && thread < EB_OPEN_CALLS_MAX ? &at->calls[thread] : NULL;
}

/* The memory stays: other threads may be in calls. */
void eb_open_calls_remove(void) {
  if (__atomic_load_n(&calls, __ATOMIC_ACQUIRE)) (void)unlink(path);
}
