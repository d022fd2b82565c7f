/* Creates and removes the file of the page, and writes copies of its calls. */
#include "recorder/recording/page.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "recorder/recording/agent.h"

_Static_assert(sizeof(eb_open_call) == 64 && sizeof(eb_open_calls_head) == sizeof(eb_open_call), "readers rely on it");

enum { COPIED_BYTES = offsetof(eb_page, awaited), NUM_TRIES = 3 };

uint64_t eb_page_last_ns;

static bool is_there;
static int copy = -1; /* of the calls, where the page is in shared memory */
static char path[4096], shared_folder[80], shared_path[4096];

/* With its blocks, not only made longer: on a full disk a mapping without memory behind it would end the program. */
static eb_page *map(int file) {
  if (posix_fallocate(file, 0, sizeof(eb_page)) != 0) return NULL;
  void *at = mmap(NULL, sizeof(eb_page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at != MAP_FAILED ? at : NULL;
}

/* 0: not known. */
static uint64_t read_namespace(void) {
  struct stat space = {0};
  return stat("/proc/self/ns/pid", &space) == 0 ? (uint64_t)space.st_ino : 0;
}

/* Nobody else's, who may have made a folder of this name. */
static bool is_own(const char *folder) {
  struct stat status;
  return lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & 077) == 0;
}

/* Containers that share the memory, but not the processes, have a folder and an agent each: an agent of another one cannot see
 * whether the ranks live. */
static int create_shared(void) {
  const char *base = strrchr(path, '/');
  uint64_t hash = 0xcbf29ce484222325u;
  if (!base) return -1;
  for (const char *c = path; c < base; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
  snprintf(shared_folder, sizeof shared_folder, EB_SHARED_FOLDER "%016llx-%llx", (unsigned)geteuid(), (unsigned long long)hash,
           (unsigned long long)read_namespace());
  snprintf(shared_path, sizeof shared_path, "%s%s", shared_folder, base);
  /* A rank that ends may remove the empty folder meanwhile. */
  for (int t = 0; t < NUM_TRIES; t++) {
    (void)mkdir(shared_folder, 0700);
    if (!is_own(shared_folder)) return -1;
    (void)unlink(shared_path); /* of a killed job */
    const int file = open(shared_path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file >= 0) return file;
  }
  return -1;
}

static void remove_shared(void) {
  if (!shared_path[0]) return;
  (void)unlink(shared_path);
  (void)rmdir(shared_folder);
}

/* What tells a process from a later one with its number. */
static uint64_t read_start(void) {
  char text[1024];
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t length = read(file, text, sizeof text - 1);
  (void)close(file);
  if (length <= 0) return 0;
  text[length] = '\0';
  char *field = strrchr(text, ')'); /* the second one; that of the start is the 22nd */
  for (int f = 2; field && f < 22; f++) field = strchr(field + 1, ' ');
  return field ? strtoull(field + 1, NULL, 10) : 0;
}

static void describe(eb_page *page, double tick_s, uint64_t begin_ticks) {
  struct timespec now;
  page->head = (eb_open_calls_head){EB_OPEN_CALLS_MAGIC, EB_OPEN_CALLS_MAX, sizeof(eb_open_call), tick_s, begin_ticks, 0, {0}};
  page->awaited.bytes = sizeof *page;
  page->awaited.pid = (int32_t)getpid();
  page->awaited.started = read_start();
  page->awaited.pid_namespace = read_namespace();
  page->awaited.begin_ticks = eb_recorder_ticks();
  clock_gettime(CLOCK_MONOTONIC, &now);
  page->awaited.begin_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  page->awaited.tick_s = tick_s;
  page->awaited.now_ns = page->awaited.begin_ns;
  __atomic_store_n(&page->awaited.magic, EB_AWAITED_MAGIC, __ATOMIC_RELEASE);
}

void eb_page_create(const char *name, bool is_mapped, double tick_s, uint64_t begin_ticks) {
  snprintf(path, sizeof path, "%s", name);
  const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return;
  const int mapped = is_mapped ? file : create_shared();
  eb_page *page = mapped >= 0 ? map(mapped) : NULL;
  if (mapped >= 0) close(mapped);
  if (!is_mapped) copy = file;
  if (!page && !is_mapped) {
    remove_shared();
    page = eb_page_current; /* only the copy of the calls is seen */
  }
  if (!page) {
    (void)unlink(path);
    return;
  }
  describe(page, tick_s, begin_ticks);
  is_there = true;
  __atomic_store_n(&eb_page_current, page, __ATOMIC_RELEASE);
}

void eb_page_show(const char *name, uint64_t num_nodes) {
  if (is_there && shared_path[0]) eb_agent_start(shared_folder, name, num_nodes);
}

void eb_page_write(uint64_t now_ticks) {
  if (copy < 0) return;
  eb_open_calls_head head = eb_page_current->head;
  head.written_ticks = now_ticks;
  if (pwrite(copy, eb_page_current, COPIED_BYTES, 0) == COPIED_BYTES && pwrite(copy, &head, sizeof head, 0) == sizeof head) return;
  (void)unlink(path); /* what it says is too old */
  close(copy);
  copy = -1;
}

eb_open_call *eb_open_call_of(uint32_t thread) { return thread < EB_OPEN_CALLS_MAX ? &eb_page_current->calls[thread] : NULL; }

/* The memory stays: other threads may be in calls. */
void eb_page_remove(void) {
  if (!is_there) return;
  (void)unlink(path);
  remove_shared();
}
