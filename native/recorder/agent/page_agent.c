/* The agent of a node: copies the pages of its ranks from shared memory to the recording's folder, where other nodes see them, as
 * long as one of the ranks lives.
 *
 * The first rank of a node starts it, see recorder/recording/agent.h. It is nobody's child, has no terminal and no open file of
 * the program, and calls no MPI. The lock of the pages' folder, which the rank has taken, stays with it: a node has one.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "recorder/agent/bundle.h"
#include "recorder/recording/agent.h"
#include "recorder/recording/awaited.h"

/* All nodes together make at most so many files a second in the recording's folder, and write so many bytes. */
#define MAX_FILES_PER_S 100.0
#define MAX_BYTES_PER_S 100e6
#define PART_OF_TIME 0.02 /* that writing may take */
#define LOOK_S 1.0        /* whether ranks live */
#define MAX_PERIOD_S 30.0 /* if only writing is slow */
#define NEW_SHARE 0.25    /* of the latest writing in the mean time that one takes */
enum { MAX_FILE = 1 << 20, MAX_OPEN = 65536 };

typedef struct {
  char *at;
  size_t bytes, capacity;
} text;

static uint64_t pid_namespace;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *add(text *to, size_t bytes) {
  if (to->bytes + bytes > to->capacity) {
    const size_t capacity = 2 * (to->bytes + bytes);
    char *larger = realloc(to->at, capacity);
    if (!larger) return NULL;
    to->at = larger;
    to->capacity = capacity;
  }
  to->bytes += bytes;
  return to->at + to->bytes - bytes;
}

/* Also of a process in another namespace, of which nothing is known: then it runs, and `is_known` is false. */
static eb_bundle_state state_of(const eb_awaited_head *owner, bool *is_known, uint32_t *num_threads) {
  char path[64], line[1024], *field;
  unsigned long long values[20] = {0};
  *is_known = owner->pid_namespace == pid_namespace;
  *num_threads = UINT32_MAX;
  if (!*is_known) return EB_BUNDLE_RUNS;
  snprintf(path, sizeof path, "/proc/%d/stat", owner->pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? EB_BUNDLE_ENDED : EB_BUNDLE_RUNS;
  const ssize_t length = read(file, line, sizeof line - 1);
  close(file);
  if (length <= 0) return EB_BUNDLE_ENDED;
  line[length] = '\0';
  if (!(field = strrchr(line, ')')) || !field[1]) return EB_BUNDLE_RUNS;
  const char letter = field[2];
  field += 3;
  for (int f = 1; f < 20; f++) values[f] = strtoull(field, &field, 10); /* the 4th to the 22nd field; the third is the letter */
  if (letter == 'Z' || letter == 'X' || (owner->started && values[19] != owner->started)) return EB_BUNDLE_ENDED;
  *num_threads = (uint32_t)values[17];
  return letter == 'T' || letter == 't' ? EB_BUNDLE_STOPPED : EB_BUNDLE_RUNS;
}

/* Of a file in `folder`. False: it is no page. */
static bool read_page(int folder, const char *name, char page[MAX_FILE], size_t *bytes) {
  const size_t length = strlen(name);
  if (strncmp(name, "rank-", 5) != 0 || length < 6 || strcmp(name + length - 5, ".open") != 0 || length >= EB_BUNDLE_NAME)
    return false;
  const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t have = read(file, page, MAX_FILE - EB_BUNDLE_BLOCK);
  close(file);
  if (have < (ssize_t)sizeof(eb_page)) return false;
  memset(page + have, 0, EB_BUNDLE_BLOCK); /* to whole blocks */
  *bytes = (size_t)have;
  const eb_page *const read_in = (const eb_page *)(const void *)page;
  return __atomic_load_n(&read_in->awaited.magic, __ATOMIC_ACQUIRE) == EB_AWAITED_MAGIC;
}

/* False: memory is short, and nothing was added. */
static bool add_page(text *to, const char *name, const char *page, size_t bytes, eb_bundle_state state, uint32_t num_threads) {
  static const char zeros[EB_BUNDLE_BLOCK];
  const size_t num = (bytes + EB_BUNDLE_BLOCK - 1) / EB_BUNDLE_BLOCK,
               in_bitmap = (num + 8 * EB_BUNDLE_BLOCK - 1) / (8 * EB_BUNDLE_BLOCK) * EB_BUNDLE_BLOCK;
  const size_t begin = to->bytes;
  uint32_t num_blocks = 0;
  if (!add(to, sizeof(eb_bundled_page) + in_bitmap + num * EB_BUNDLE_BLOCK)) return false;
  eb_bundled_page *const head = (eb_bundled_page *)(void *)(to->at + begin);
  unsigned char *const bitmap = (unsigned char *)(head + 1);
  char *const blocks = (char *)bitmap + in_bitmap;
  memset(head, 0, sizeof *head + in_bitmap);
  for (size_t b = 0; b < num; b++) {
    const char *const block = page + b * EB_BUNDLE_BLOCK;
    if (memcmp(block, zeros, EB_BUNDLE_BLOCK) == 0) continue;
    bitmap[b / 8] |= (unsigned char)(1u << b % 8);
    memcpy(blocks + (size_t)num_blocks++ * EB_BUNDLE_BLOCK, block, EB_BUNDLE_BLOCK);
  }
  snprintf(head->name, sizeof head->name, "%s", name);
  head->state = state;
  head->num_threads = num_threads;
  head->bytes = (uint32_t)(num * EB_BUNDLE_BLOCK);
  head->num_blocks = num_blocks;
  to->bytes = begin + sizeof *head + in_bitmap + (size_t)num_blocks * EB_BUNDLE_BLOCK;
  return true;
}

/* Calls `use` for each page of a folder. */
static void for_each_page(int folder, void (*use)(void *with, const char *name, const char *page, size_t bytes), void *with) {
  static char page[MAX_FILE] __attribute__((aligned(64)));
  const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *const entries = again >= 0 ? fdopendir(again) : NULL;
  if (!entries) {
    if (again >= 0) close(again);
    return;
  }
  size_t bytes;
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
    if (read_page(folder, entry->d_name, page, &bytes)) use(with, entry->d_name, page, bytes);
  closedir(entries);
}

typedef struct {
  int folder;
  text bundle;
  uint32_t num_pages;
  bool is_any_alive, is_any_unknown, notes_time;
} seen;

/* For a rank that reads no clock of its own. */
static void note_time(int folder, const char *name) {
  const uint64_t now = now_ns();
  const int file = openat(folder, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return;
  (void)!pwrite(file, &now, sizeof now, offsetof(eb_page, awaited.now_ns));
  close(file);
}

static void see(void *with, const char *name, const char *page, size_t bytes) {
  seen *const found = with;
  bool is_known;
  uint32_t num_threads;
  const eb_bundle_state state = state_of(&((const eb_page *)(const void *)page)->awaited, &is_known, &num_threads);
  if (state == EB_BUNDLE_ENDED && faccessat(found->folder, name, F_OK, 0) != 0) return; /* it has left MPI_Finalize meanwhile */
  found->is_any_alive |= is_known && state != EB_BUNDLE_ENDED;
  found->is_any_unknown |= !is_known;
  if (found->notes_time) note_time(found->folder, name);
  if (add_page(&found->bundle, name, page, bytes, state, num_threads)) found->num_pages++;
}

static void remove_ended(void *with, const char *name, const char *page, size_t bytes) {
  bool is_known;
  uint32_t num_threads;
  (void)bytes;
  if (state_of(&((const eb_page *)(const void *)page)->awaited, &is_known, &num_threads) == EB_BUNDLE_ENDED)
    (void)unlinkat(*(const int *)with, name, 0);
}

/* Also if nothing is known of the process. */
static void remove_page(void *with, const char *name, const char *page, size_t bytes) {
  const int folder = *(const int *)with;
  bool is_known;
  uint32_t num_threads;
  (void)bytes;
  const eb_bundle_state state = state_of(&((const eb_page *)(const void *)page)->awaited, &is_known, &num_threads);
  if (state == EB_BUNDLE_ENDED || !is_known) (void)unlinkat(folder, name, 0);
}

/* The end of a folder's name: the namespace of its processes. */
static const char *space_of(const char *folder) {
  const char *const end = strrchr(folder, '-');
  return end ? end : folder;
}

/* What killed ranks of earlier jobs have left, whose agents were killed as well. Ranks of another namespace may live: their folders
 * are not even locked, as their agent that starts meanwhile would find a lock. */
static void remove_stale(const char *own) {
  char begin[64], path[PATH_MAX];
  DIR *const entries = opendir("/dev/shm");
  if (!entries) return;
  snprintf(begin, sizeof begin, EB_SHARED_FOLDER, (unsigned)geteuid());
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    struct stat status;
    snprintf(path, sizeof path, "/dev/shm/%s", entry->d_name);
    if (strncmp(path, begin, strlen(begin)) != 0 || strcmp(path, own) == 0 || strcmp(space_of(path), space_of(own)) != 0) continue;
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) continue;
    if (fstat(folder, &status) == 0 && status.st_uid == geteuid() && flock(folder, LOCK_EX | LOCK_NB) == 0) {
      seen found = {.folder = folder};
      for_each_page(folder, see, &found);
      free(found.bundle.at);
      if (!found.is_any_alive && !found.is_any_unknown && found.num_pages > 0) {
        for_each_page(folder, remove_page, (void *)&folder);
        (void)rmdir(path);
      }
    }
    close(folder);
  }
  closedir(entries);
}

/* 0, or why it cannot be written. */
static int write_whole(const text *bundle, const char *path) {
  char temporary[PATH_MAX];
  snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
  const int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  size_t done = 0;
  errno = 0; /* what it says after a short write */
  while (done < bundle->bytes) {
    const ssize_t written = write(file, bundle->at + done, bundle->bytes - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += (size_t)written;
  }
  const bool is_whole = close(file) == 0 && done == bundle->bytes;
  if (is_whole && rename(temporary, path) == 0) return 0;
  const int why = errno ? errno : EIO;
  (void)unlink(temporary);
  return why;
}

/* As the program's ranks are not disturbed: without its files, its cores and its priority. */
static void detach(void) {
  cpu_set_t all;
  struct rlimit files;
  const int none = open("/dev/null", O_RDWR);
  for (int f = 0; f < 3 && none >= 0; f++) (void)dup2(none, f);
  const int num = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < MAX_OPEN ? (int)files.rlim_cur : MAX_OPEN;
  for (int f = EB_AGENT_LOCK + 1; f < num; f++) close(f);
  memset(&all, 0xff, sizeof all);
  (void)sched_setaffinity(0, sizeof all, &all);
  (void)setpriority(PRIO_PROCESS, 0, 19);
  (void)setsid();
  (void)!chdir("/");
  umask(077);
}

static void sleep_s(double seconds) {
  struct timespec rest = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  while (nanosleep(&rest, &rest) != 0 && errno == EINTR) continue;
}

static double most(double one, double other) { return one > other ? one : other; }

/* Until all ranks have ended, or the recording is gone. */
static void keep(const char *folder, const char *path, double num_nodes) {
  struct stat space = {0};
  seen found = {.folder = EB_AGENT_LOCK, .notes_time = true};
  const int lock = EB_AGENT_LOCK;
  double period_s = most(LOOK_S, num_nodes / MAX_FILES_PER_S), mean_s = 0.0;
  uint64_t next_ns = 0, serial = 0;
  bool is_written = false;
  pid_namespace = stat("/proc/self/ns/pid", &space) == 0 ? (uint64_t)space.st_ino : 0;
  remove_stale(folder);
  for_each_page(lock, remove_ended, (void *)&lock); /* of an earlier job with this recording, whose ranks may be elsewhere now */
  for (;; sleep_s(LOOK_S)) {
    found.bundle.bytes = 0;
    found.num_pages = 0;
    found.is_any_alive = false;
    const uint64_t begin_ns = now_ns();
    if (!add(&found.bundle, sizeof(eb_bundle_head))) continue;
    for_each_page(EB_AGENT_LOCK, see, &found);
    if (found.num_pages == 0 && !found.is_any_alive) break;
    if (found.is_any_alive && begin_ns < next_ns) continue;
    if (is_written && access(path, F_OK) != 0 && errno == ENOENT) break; /* removed: nobody records any more */
    *(eb_bundle_head *)(void *)found.bundle.at = (eb_bundle_head){
        .magic = EB_BUNDLE_MAGIC,
        .serial = ++serial,
        .monotonic_ns = begin_ns,
        .period_ms = (uint32_t)(1e3 * period_s),
        .num_pages = found.num_pages,
        .is_final = !found.is_any_alive,
    };
    const int why = write_whole(&found.bundle, path);
    if (why == ENOENT) break; /* the folder is gone */
    is_written |= why == 0;
    next_ns = begin_ns + (uint64_t)(1e9 * (period_s - LOOK_S / 2)); /* as the head says, whatever this writing took */
    const double took_s = 1e-9 * (double)(now_ns() - begin_ns);
    mean_s += (serial > 1 ? NEW_SHARE : 1.0) * (took_s - mean_s);
    const double shared_s = mean_s / PART_OF_TIME < MAX_PERIOD_S ? mean_s / PART_OF_TIME : MAX_PERIOD_S;
    period_s = most(most(LOOK_S, num_nodes / MAX_FILES_PER_S), num_nodes * (double)found.bundle.bytes / MAX_BYTES_PER_S);
    period_s = most(period_s, shared_s);
    if (found.is_any_alive) continue;
    for_each_page(lock, remove_page, (void *)&lock);
    if (rmdir(folder) == 0 || errno == ENOENT) return; /* else new ranks have begun, which find the lock taken */
  }
  /* All ranks have said themselves how they ended. */
  (void)unlink(path);
  (void)rmdir(folder);
}

int main(int num, char **arguments) {
  if (num != 4) {
    fputs("page_agent is started by ranks that are recorded\n", stderr);
    return 2;
  }
  const pid_t child = fork();
  if (child != 0) return child < 0;
  detach();
  keep(arguments[1], arguments[2], strtod(arguments[3], NULL));
  return 0;
}
