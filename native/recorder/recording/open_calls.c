/* The mapped page of the calls in which threads are. */
#include "recorder/recording/open_calls.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(eb_open_call) == 64 && sizeof(eb_open_calls_head) == sizeof(eb_open_call), "readers rely on it");

typedef struct {
  eb_open_calls_head head;
  eb_open_call calls[EB_OPEN_CALLS_MOST];
} page;

static page *mapped;
static char path[4096];

void eb_open_calls_create(const char *name, double tick_s, uint64_t begin_ticks) {
  static const page empty;
  snprintf(path, sizeof path, "%s", name);
  const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return;
  /* Written, not only made longer: on a full disk a mapping without memory behind it would end the program. */
  page *at = pwrite(file, &empty, sizeof empty, 0) == (ssize_t)sizeof empty
                 ? mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                 : MAP_FAILED;
  close(file);
  if (at == MAP_FAILED) {
    (void)unlink(path);
    return;
  }
  at->head = (eb_open_calls_head){EB_OPEN_CALLS_MAGIC, EB_OPEN_CALLS_MOST, sizeof(eb_open_call), tick_s, begin_ticks, {0}};
  __atomic_store_n(&mapped, at, __ATOMIC_RELEASE);
}

eb_open_call *eb_open_call_of(uint32_t thread) {
  page *const at = __atomic_load_n(&mapped, __ATOMIC_ACQUIRE);
  return at && thread < EB_OPEN_CALLS_MOST ? &at->calls[thread] : NULL;
}

/* It stays mapped: other threads may be in calls. */
void eb_open_calls_remove(void) {
  if (__atomic_load_n(&mapped, __ATOMIC_ACQUIRE)) (void)unlink(path);
}
