/* The ring of the latest calls, and its file. */
#include "recorder/recording/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder/recording/ticks.h"

_Static_assert(sizeof(eb_trace_head) == 64 && sizeof(eb_traced) == 64, "readers rely on it");

bool eb_trace_is_on;

static int file = -1;
static char path[4096];
static eb_trace_head head;
static eb_traced *records;
static uint64_t num_written;

static void fail(void) {
  fprintf(stderr, "earlybird: cannot write %s: %s; the events of this rank are not kept\n", path, strerror(errno));
}

static void read_clocks(uint64_t *ticks, uint64_t *ns) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *ticks = eb_recorder_ticks();
  *ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void eb_trace_create(const char *name, uint64_t capacity, double tick_s) {
  snprintf(path, sizeof path, "%s", name);
  records = calloc(capacity, sizeof *records);
  file = records ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
  if (file < 0) {
    fail();
    return;
  }
  head = (eb_trace_head){.magic = EB_TRACE_MAGIC, .capacity = capacity, .tick_s = tick_s};
  read_clocks(&head.begin_ticks, &head.begin_ns);
  __atomic_store_n(&eb_trace_is_on, true, __ATOMIC_RELEASE);
}

eb_traced *eb_trace_add(const eb_traced *record, uint64_t *number) {
  const uint64_t place = __atomic_fetch_add(&head.num, 1, __ATOMIC_RELAXED);
  eb_traced *const added = &records[place % head.capacity];
  __atomic_store_n(&added->number, 0, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  memcpy((char *)added + sizeof added->number, (const char *)record + sizeof record->number,
         sizeof *record - sizeof record->number);
  __atomic_store_n(&added->number, place + 1, __ATOMIC_RELEASE);
  *number = place + 1;
  return added;
}

uint32_t eb_trace_post(void) {
  static uint32_t num;
  return eb_trace_is_on ? __atomic_add_fetch(&num, 1, __ATOMIC_RELAXED) : 0;
}

static bool put(const void *data, size_t bytes, size_t offset) {
  for (const char *at = data; bytes > 0;) {
    const ssize_t written = pwrite(file, at, bytes, (off_t)offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    offset += (size_t)written;
    bytes -= (size_t)written;
  }
  return true;
}

/* Records from..to of one turn, while threads may be writing to some of them. */
static bool put_records(uint64_t from, uint64_t to) {
  enum { NUM_AT_ONCE = 256 };
  eb_traced copies[NUM_AT_ONCE];
  while (from < to) {
    const uint64_t num = to - from < NUM_AT_ONCE ? to - from : NUM_AT_ONCE, place = from % head.capacity;
    for (uint64_t r = 0; r < num; r++) {
      const eb_traced *const record = &records[place + r];
      const uint64_t number = __atomic_load_n(&record->number, __ATOMIC_ACQUIRE);
      memcpy(&copies[r], record, sizeof copies[r]);
      __atomic_thread_fence(__ATOMIC_ACQUIRE);
      copies[r].number = __atomic_load_n(&record->number, __ATOMIC_RELAXED) == number ? number : 0;
    }
    if (!put(copies, num * sizeof copies[0], sizeof head + place * sizeof copies[0])) return false;
    from += num;
  }
  return true;
}

uint64_t eb_trace_num_written(void) { return num_written; }

/* Without the latest records, what is there would be taken for the end of the run. */
static void give_up(void) {
  fail();
  close(file);
  (void)unlink(path);
  file = -1;
}

void eb_trace_write(uint64_t from_number) {
  if (file < 0) return;
  read_clocks(&head.last_ticks, &head.last_ns);
  const uint64_t num = __atomic_load_n(&head.num, __ATOMIC_ACQUIRE);
  const uint64_t wanted = from_number > 0 ? from_number - 1 : 0, oldest = num > head.capacity ? num - head.capacity : 0;
  const uint64_t from = wanted > oldest ? wanted : oldest;
  const uint64_t turn = num / head.capacity * head.capacity; /* where the ring begins again */
  eb_trace_head written = head;
  written.num = num;
  const bool is_good = put(&written, sizeof written, 0) && (from >= turn || put_records(from, turn)) &&
                       put_records(from > turn ? from : turn, num);
  if (is_good) num_written = num;
  else give_up();
}
