/* Keeps the contents of epochs. */
#include "recorder/recording/samples.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "recorder/recording/call.h"

/* What a phase, and what the process may keep: a recording has a file of each of many ranks. */
enum { MAX_ROWS = 16384, MAX_ROWS_OF_ALL = 1 << 17 };

typedef struct {
  uint64_t what, messages, bytes;
  int32_t peer;
} row;

typedef struct {
  uint64_t hash;
  uint32_t first, num; /* of its rows */
  bool is_used;
} variant;

struct eb_samples {
  uint64_t limit; /* of the hashes */
  uint64_t num_epochs, written_epochs;
  bool is_dropped; /* an epoch was too large or cut, or memory short */
  uint32_t num, num_variants, num_rows, capacity;
  struct {
    uint64_t epoch;
    uint32_t variant;
  } sampled[EB_SAMPLES_MAX];
  variant variants[EB_SAMPLES_MAX];
  row *rows;
};

/* Sampled epochs are few. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t num_rows_of_all;

static uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

uint64_t eb_samples_hash(uint64_t epoch) { return mix(epoch + 0x9e3779b97f4a7c15u); }

/* How often a poll is repeated is chance, and calls without data say nothing of an exchange. */
static bool is_kept(const eb_event *event) {
  const bool is_poll = eb_calls_begin[eb_what_call(event->what)].kind == EB_CALL_POLL;
  return event->messages > 0 || (event->bytes > 0 && !is_poll);
}

static uint64_t hash_of(const row *rows, uint32_t num) {
  uint64_t hash = num;
  for (uint32_t r = 0; r < num; r++)
    hash = mix(hash ^ rows[r].what) + mix(rows[r].messages << 32 ^ rows[r].bytes) * 31 + (uint64_t)(uint32_t)rows[r].peer;
  return hash;
}

static void drop(eb_samples *samples) {
  samples->is_dropped = true;
  num_rows_of_all -= samples->capacity;
  samples->num = samples->num_variants = samples->num_rows = samples->capacity = 0;
  free(samples->rows);
  samples->rows = NULL;
}

/* With half of the limit, and the contents that are still needed. */
static void thin(eb_samples *samples) {
  uint32_t kept = 0, numbers[EB_SAMPLES_MAX], num_variants = 0, num_rows = 0;
  samples->limit /= 2;
  for (uint32_t v = 0; v < samples->num_variants; v++) samples->variants[v].is_used = false;
  for (uint32_t s = 0; s < samples->num; s++) {
    const uint64_t epoch = samples->sampled[s].epoch;
    if (epoch >= EB_SAMPLES_FIRST && eb_samples_hash(epoch) > samples->limit) continue;
    samples->variants[samples->sampled[s].variant].is_used = true;
    samples->sampled[kept++] = samples->sampled[s];
  }
  samples->num = kept;
  for (uint32_t v = 0; v < samples->num_variants; v++) {
    variant each = samples->variants[v];
    if (!each.is_used) continue;
    memmove(&samples->rows[num_rows], &samples->rows[each.first], each.num * sizeof *samples->rows);
    each.first = num_rows;
    num_rows += each.num;
    numbers[v] = num_variants;
    samples->variants[num_variants++] = each;
  }
  for (uint32_t s = 0; s < kept; s++) samples->sampled[s].variant = numbers[samples->sampled[s].variant];
  samples->num_variants = num_variants;
  samples->num_rows = num_rows;
}

static bool reserve(eb_samples *samples, uint32_t num) {
  if (samples->num_rows + num <= samples->capacity) return true;
  uint32_t capacity = 2 * (samples->num_rows + num);
  if (capacity > MAX_ROWS) capacity = MAX_ROWS;
  if (samples->num_rows + num > capacity || num_rows_of_all + capacity - samples->capacity > MAX_ROWS_OF_ALL) return false;
  row *rows = realloc(samples->rows, capacity * sizeof *rows);
  if (!rows) return false;
  num_rows_of_all += capacity - samples->capacity;
  samples->rows = rows;
  samples->capacity = capacity;
  return true;
}

static bool is_wanted(const eb_samples *samples, uint64_t epoch) {
  return epoch < EB_SAMPLES_FIRST || eb_samples_hash(epoch) <= samples->limit;
}

/* The number of the content whose rows have been put behind the others; it is kept if it is new. */
static uint32_t variant_of(eb_samples *samples, uint32_t num) {
  const row *rows = &samples->rows[samples->num_rows];
  const uint64_t hash = hash_of(rows, num);
  for (uint32_t v = 0; v < samples->num_variants; v++) {
    const variant *each = &samples->variants[v];
    if (each->hash == hash && each->num == num && memcmp(&samples->rows[each->first], rows, num * sizeof *rows) == 0) return v;
  }
  samples->variants[samples->num_variants] = (variant){hash, samples->num_rows, num, true};
  samples->num_rows += num;
  return samples->num_variants++;
}

static void add(eb_samples *samples, uint64_t epoch, const eb_event *events, uint32_t num_events) {
  uint32_t num = 0;
  for (uint32_t e = 0; e < num_events; e++) num += is_kept(&events[e]);
  while (samples->num == EB_SAMPLES_MAX || !reserve(samples, num)) {
    const uint32_t before = samples->num;
    if (samples->num <= EB_SAMPLES_FIRST) {
      drop(samples);
      return;
    }
    thin(samples);
    if (samples->num == before && samples->limit == 0) drop(samples);
    if (samples->is_dropped || !is_wanted(samples, epoch)) return;
  }
  row *rows = num > 0 ? &samples->rows[samples->num_rows] : NULL;
  for (uint32_t e = 0; e < num_events; e++) {
    if (!is_kept(&events[e])) continue;
    memset(rows, 0, sizeof *rows); /* with its gap, because rows are compared as memory */
    rows->what = events[e].what;
    rows->messages = events[e].messages;
    rows->bytes = events[e].bytes;
    rows->peer = events[e].peer;
    rows++;
  }
  samples->sampled[samples->num].epoch = epoch;
  samples->sampled[samples->num].variant = variant_of(samples, num);
  samples->num++;
}

/* With one more epoch. NULL: memory is short. */
static eb_samples *counted(eb_samples **samples, uint64_t epoch) {
  if (!*samples) {
    eb_samples *created = calloc(1, sizeof *created);
    if (!created) return NULL;
    created->limit = UINT64_MAX;
    __atomic_store_n(samples, created, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&(*samples)->num_epochs, epoch + 1, __ATOMIC_RELAXED);
  return *samples;
}

void eb_samples_give_up(eb_samples **samples, uint64_t epoch) {
  eb_samples *const to = counted(samples, epoch);
  if (!to || to->is_dropped) return;
  pthread_mutex_lock(&lock);
  drop(to);
  pthread_mutex_unlock(&lock);
}

void eb_samples_add(eb_samples **samples, uint64_t epoch, const eb_event *events, uint32_t num_events) {
  eb_samples *const to = counted(samples, epoch);
  if (!to || to->is_dropped || !is_wanted(to, epoch)) return;
  pthread_mutex_lock(&lock);
  add(to, epoch, events, num_events);
  pthread_mutex_unlock(&lock);
}

bool eb_samples_are_due(const eb_samples *samples, bool is_end) {
  const uint64_t num = __atomic_load_n(&samples->num_epochs, __ATOMIC_RELAXED);
  return is_end ? num > samples->written_epochs : num >= 2 * samples->written_epochs && num > samples->written_epochs;
}

/* The thread may have been interrupted while it adds, by a signal whose handler ends the program. */
static bool lock_soon(void) {
  for (int k = 0; k < 1000; k++) {
    if (pthread_mutex_trylock(&lock) == 0) return true;
    sched_yield();
  }
  return false;
}

bool eb_samples_print(eb_samples *samples, eb_payload *payload) {
  if (!lock_soon()) return false;
  eb_payload_print(payload, "\"complete\":%s,\"sampled\":[", samples->is_dropped ? "false" : "true");
  for (uint32_t s = 0; s < samples->num; s++)
    eb_payload_print(payload, "%s[%llu,%u]", s ? "," : "", (unsigned long long)samples->sampled[s].epoch,
                     samples->sampled[s].variant);
  eb_payload_print(payload, "],\"variants\":[");
  for (uint32_t v = 0; v < samples->num_variants; v++) {
    const variant *each = &samples->variants[v];
    eb_payload_print(payload, v ? ",[" : "[");
    for (uint32_t r = 0; r < each->num; r++) {
      const row *of = &samples->rows[each->first + r];
      eb_payload_print(payload, "%s[%u,%u,%d,%u,%llu,%llu]", r ? "," : "", eb_what_call(of->what), eb_what_role(of->what), of->peer,
                       eb_what_communicator(of->what), (unsigned long long)of->messages, (unsigned long long)of->bytes);
    }
    eb_payload_print(payload, "]");
  }
  eb_payload_print(payload, "]");
  samples->written_epochs = __atomic_load_n(&samples->num_epochs, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&lock);
  return true;
}
