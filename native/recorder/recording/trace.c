/* The rings of calls in memory and in the file. */
#include "recorder/recording/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder/recording/ticks.h"

_Static_assert(sizeof(eb_trace_head) <= EB_TRACE_HEAD_BYTES && sizeof(eb_traced) == 64, "readers rely on it");

#define MIN_APART_NS 100000000u /* moments: less says nothing of a drift */
enum { NUM_AT_ONCE = 1024 };

eb_trace_ring eb_trace;

static int file = -1;
static char path[4096];
static eb_trace_head head;
static uint64_t apart_ns = MIN_APART_NS, last_missing;

static void fail(const char *what) { fprintf(stderr, "earlybird: cannot write %s: %s; %s\n", path, strerror(errno), what); }

/* The thread may be interrupted between the two clocks: of several tries the quickest counts. */
static eb_moment read_clocks(void) {
  eb_moment best = {0};
  uint64_t least = UINT64_MAX;
  for (int k = 0; k < 3; k++) {
    struct timespec now;
    const uint64_t before = eb_recorder_ticks();
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t after = eb_recorder_ticks();
    if (after - before >= least) continue;
    least = after - before;
    best = (eb_moment){before + (after - before) / 2, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec};
  }
  return best;
}

/* How much of it could be written. */
static size_t put(const void *data, size_t bytes, uint64_t offset) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t written = pwrite(file, (const char *)data + done, bytes - done, (off_t)(offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += (size_t)written;
  }
  return done;
}

void eb_trace_create(const char *name, uint64_t capacity, double tick_s, bool is_shared) {
  snprintf(path, sizeof path, "%s", name);
  eb_trace.records = aligned_alloc(64, EB_TRACE_RING * sizeof *eb_trace.records);
  file = eb_trace.records ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
  if (file < 0) {
    fail("the events of this rank are not kept");
    return;
  }
  /* Touched now, so that no call of the program waits for memory. */
  memset(eb_trace.records, 0, EB_TRACE_RING * sizeof *eb_trace.records);
  head = (eb_trace_head){.magic = EB_TRACE_MAGIC, .capacity = capacity, .tick_s = tick_s, .begin = read_clocks()};
  head.last = head.begin;
  if (put(&head, sizeof head, 0) < sizeof head) {
    fail("the events of this rank are not kept");
    close(file);
    (void)unlink(path);
    file = -1;
    return;
  }
  eb_trace.is_shared = is_shared;
  __atomic_store_n(&eb_trace.is_on, true, __ATOMIC_RELEASE);
}

/* Of the record with this number, as it is in the file: others may be adding. False: it is not whole, or no longer there. */
static bool copy_record(uint64_t number, eb_traced *copy) {
  const eb_traced *const record = eb_trace_place(number);
  const uint32_t turn = eb_trace_turn(number);
  const bool was_whole = __atomic_load_n(&record->turn, __ATOMIC_ACQUIRE) == turn;
  memcpy(copy, record, sizeof *copy);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  const bool is_whole = was_whole && __atomic_load_n(&record->turn, __ATOMIC_RELAXED) == turn;
  copy->turn = is_whole ? (uint32_t)((number - 1) / head.capacity) + 1 : 0;
  return is_whole;
}

/* Records first..last, which follow each other in the file. Returns how many could be written. *first_missing: the first that
 * is not whole, if there is none before. */
static uint64_t put_records(uint64_t first, uint64_t last, uint64_t *first_missing) {
  static eb_traced copies[NUM_AT_ONCE];
  const uint64_t wanted = last - first + 1;
  uint64_t done = 0;
  while (done < wanted) {
    const uint64_t num = wanted - done < NUM_AT_ONCE ? wanted - done : NUM_AT_ONCE, at = first + done;
    for (uint64_t r = 0; r < num; r++)
      if (!copy_record(at + r, &copies[r]) && *first_missing == 0) *first_missing = at + r;
    const size_t written = put(copies, num * sizeof copies[0], EB_TRACE_HEAD_BYTES + (at - 1) % head.capacity * sizeof copies[0]) /
                           sizeof copies[0];
    done += written;
    if (written < num) break;
  }
  return done;
}

/* Full: every second one goes, and the next ones are twice as far apart. */
static void keep_moment(eb_moment now) {
  const eb_moment before = head.num_clocks > 0 ? head.clocks[head.num_clocks - 1] : head.begin;
  if (now.ns - before.ns < apart_ns) return;
  if (head.num_clocks == EB_TRACE_MAX_CLOCKS) {
    for (int k = 0; k < EB_TRACE_MAX_CLOCKS / 2; k++) head.clocks[k] = head.clocks[2 * k + 1];
    head.num_clocks /= 2;
    apart_ns *= 2;
  }
  head.clocks[head.num_clocks++] = now;
}

/* What is in the file stays, as far as it is whole: the head says that the run went on. */
static void give_up(void) {
  fail("the events of this rank end here");
  __atomic_store_n(&eb_trace.is_on, false, __ATOMIC_RELEASE);
  head.is_cut = 1;
  (void)put(&head, sizeof head, 0);
  close(file);
  file = -1;
}

void eb_trace_rewrite(uint64_t number) {
  eb_traced copy;
  if (file < 0 || number == 0 || number > eb_trace.num_written || head.num > number + head.capacity - 1) return;
  if (eb_traced_kind_of(eb_trace_place(number)) != EB_TRACED_POLLS || !copy_record(number, &copy)) return;
  if (put(&copy, sizeof copy, EB_TRACE_HEAD_BYTES + (number - 1) % head.capacity * sizeof copy) < sizeof copy) give_up();
}

void eb_trace_write(void) {
  if (file < 0) return;
  const uint64_t num = __atomic_load_n(&eb_trace.num, __ATOMIC_ACQUIRE);
  const uint64_t kept = head.capacity < EB_TRACE_RING ? head.capacity : EB_TRACE_RING, oldest = num > kept ? num - kept + 1 : 1;
  uint64_t next = eb_trace.num_written + 1 > oldest ? eb_trace.num_written + 1 : oldest, first_missing = 0;
  bool is_good = true;
  while (next <= num && is_good) {
    /* To the end of a turn of the file. */
    const uint64_t turn_ends = ((next - 1) / head.capacity + 1) * head.capacity, last = turn_ends < num ? turn_ends : num;
    const uint64_t wanted = last - next + 1, written = put_records(next, last, &first_missing);
    next += written;
    is_good = written == wanted;
  }
  head.last = read_clocks();
  keep_moment(head.last);
  /* After the records: what the head counts is there. */
  head.num = next - 1 > head.num ? next - 1 : head.num;
  if (is_good) is_good = put(&head, sizeof head, 0) == sizeof head;
  if (!is_good) give_up();
  /* What another thread is adding is written the next time, unless that has ended meanwhile. */
  else __atomic_store_n(&eb_trace.num_written, first_missing > last_missing ? first_missing - 1 : num, __ATOMIC_RELAXED);
  last_missing = first_missing;
}
