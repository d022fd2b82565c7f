/* Finds the phases of epochs. */
#include "recorder/recording/epoch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A program that generates code, or calls the MPI from everywhere: what exceeds this is of no phase. */
#define MAX_PHASES 1024

int eb_epoch_region = 1;
__thread eb_epoch *eb_epoch_current __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static eb_phase *first;
static uint32_t num;

eb_phase *eb_phases_first(void) { return __atomic_load_n(&first, __ATOMIC_ACQUIRE); }

static uint64_t mix(uint64_t value) {
  value = (value ^ value >> 31) * 0x9e3779b97f4a7c15u;
  return value ^ value >> 29;
}

/* Of a set: which call comes first may differ from epoch to epoch. */
static uint64_t signature_of(const eb_epoch *epoch, int region) {
  uint64_t sum = mix((uint64_t)region + 1);
  for (uint32_t s = 0; s < epoch->num_steps; s++) sum += mix((uint64_t)(uintptr_t)epoch->steps[s].site * 31 + epoch->steps[s].call);
  return sum;
}

/* Under the lock. */
static eb_phase *add_phase(const eb_epoch *epoch, uint64_t signature, int region) {
  eb_phase *phase = num < MAX_PHASES ? calloc(1, sizeof *phase) : NULL;
  if (!phase) return NULL;
  phase->signature = signature;
  phase->number = ++num;
  phase->region = region;
  phase->num_steps = epoch->num_steps;
  memcpy(phase->steps, epoch->steps, epoch->num_steps * sizeof epoch->steps[0]);
  phase->next = first;
  __atomic_store_n(&first, phase, __ATOMIC_RELEASE);
  return phase;
}

static uint32_t find_phase(const eb_epoch *epoch, uint64_t signature, int region) {
  pthread_mutex_lock(&lock);
  eb_phase *phase = first;
  while (phase && phase->signature != signature) phase = phase->next;
  if (!phase) phase = add_phase(epoch, signature, region);
  pthread_mutex_unlock(&lock);
  return phase ? phase->number : 0;
}

static uint32_t phase_of(eb_epoch *epoch) {
  const int region = __atomic_load_n(&eb_epoch_region, __ATOMIC_RELAXED);
  const uint64_t signature = signature_of(epoch, region);
  const uint64_t place = signature % EB_EPOCH_NUM_REMEMBERED;
  if (epoch->remembered[place].phase > 0 && epoch->remembered[place].signature == signature) return epoch->remembered[place].phase;
  epoch->remembered[place].signature = signature;
  return epoch->remembered[place].phase = find_phase(epoch, signature, region);
}

/* The totals of threads grow under the lock, because whoever writes the file reads them. */
static eb_phase_totals *totals_of(eb_epoch *epoch, uint32_t phase) {
  if (phase < epoch->num_totals) return &epoch->totals[phase];
  const uint32_t larger = 2 * (phase + 8);
  pthread_mutex_lock(&lock);
  eb_phase_totals *totals = realloc(epoch->totals, larger * sizeof *totals);
  if (totals) {
    memset(totals + epoch->num_totals, 0, (larger - epoch->num_totals) * sizeof *totals);
    epoch->totals = totals;
    epoch->num_totals = larger;
  }
  pthread_mutex_unlock(&lock);
  return totals ? &totals[phase] : NULL;
}

bool eb_phase_totals_read(eb_epoch *epoch, uint32_t phase, eb_phase_totals *totals) {
  pthread_mutex_lock(&lock);
  const bool is_there = phase < epoch->num_totals;
  if (is_there) {
    eb_phase_totals *const counted = &epoch->totals[phase];
    *totals = (eb_phase_totals){__atomic_load_n(&counted->epochs, __ATOMIC_RELAXED),
                                __atomic_load_n(&counted->ticks, __ATOMIC_RELAXED),
                                counted->first_ticks,
                                __atomic_load_n(&counted->last_ticks, __ATOMIC_RELAXED),
                                __atomic_load_n(&counted->samples, __ATOMIC_ACQUIRE),
                                __atomic_exchange_n(&counted->is_dirty, 0, __ATOMIC_ACQUIRE)};
  }
  pthread_mutex_unlock(&lock);
  return is_there;
}

eb_event *eb_epoch_pending_read(eb_epoch *epoch, uint32_t *num) {
  const uint32_t turn = __atomic_load_n(&epoch->turn, __ATOMIC_ACQUIRE);
  if (turn % 2 == 0) return NULL;
  pthread_mutex_lock(&lock); /* the memory of the events stays */
  const uint32_t num_events = __atomic_load_n(&epoch->num_events, __ATOMIC_RELAXED);
  /* Of another turn the two may not belong together. */
  const bool is_whole = num_events <= __atomic_load_n(&epoch->capacity, __ATOMIC_RELAXED);
  eb_event *copy = num_events > 0 && is_whole ? malloc(num_events * sizeof *copy) : NULL;
  if (copy) memcpy(copy, epoch->events, num_events * sizeof *copy);
  pthread_mutex_unlock(&lock);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (copy && __atomic_load_n(&epoch->turn, __ATOMIC_RELAXED) == turn) {
    *num = num_events;
    return copy;
  }
  free(copy);
  return NULL;
}

static void count(eb_phase_totals *totals, const eb_epoch *epoch) {
  if (totals->epochs == 0) totals->first_ticks = epoch->begin_ticks;
  eb_count(&totals->epochs, 1);
  /* Within its first call the end is that of the call before. */
  const uint64_t end_ticks = epoch->end_ticks > epoch->begin_ticks ? epoch->end_ticks : epoch->begin_ticks;
  eb_count(&totals->ticks, end_ticks - epoch->begin_ticks);
  __atomic_store_n(&totals->last_ticks, end_ticks, __ATOMIC_RELAXED);
  __atomic_store_n(&totals->is_dirty, 1, __ATOMIC_RELAXED);
}

void eb_epoch_end(eb_epoch *epoch, eb_table *table) {
  const bool is_cut = epoch->is_cut;
  epoch->is_over = epoch->is_cut = false;
  if (epoch->num_steps == 0) return;
  const uint32_t phase = phase_of(epoch);
  for (uint32_t e = 0; e < epoch->num_events; e++) {
    const eb_event *event = &epoch->events[e];
    eb_entry *entry = eb_table_entry(table, eb_what_in_phase(event->what, phase), event->peer);
    if (entry) eb_entry_add(entry, event->calls, event->messages, event->bytes, event->ticks);
  }
  eb_phase_totals *totals = totals_of(epoch, phase);
  if (totals && phase > 0 && is_cut) eb_samples_give_up(&totals->samples, totals->epochs);
  else if (totals && phase > 0) eb_samples_add(&totals->samples, totals->epochs, epoch->events, epoch->num_events);
  if (totals) count(totals, epoch);
  eb_arrivals_epoch_ended(&epoch->arrivals, phase);
  epoch->num_events = epoch->num_steps = 0;
  epoch->has_messages = false;
  epoch->begin_ticks = 0;
}

void eb_epoch_cut(eb_epoch *epoch, eb_table *table) {
  epoch->is_cut = true;
  eb_epoch_end(epoch, table);
  epoch->is_cut = true;
}

static bool grow(eb_epoch *epoch) {
  const uint32_t capacity = epoch->capacity > 0 ? 2 * epoch->capacity : EB_EPOCH_FEW_EVENTS;
  pthread_mutex_lock(&lock); /* whoever writes the file may be reading */
  eb_event *events = realloc(epoch->events, capacity * sizeof *events);
  if (events) {
    epoch->events = events;
    epoch->capacity = capacity;
  }
  pthread_mutex_unlock(&lock);
  return events != NULL;
}

void eb_epoch_make_room(eb_epoch *epoch, eb_table *table) {
  const bool is_over = epoch->is_over, is_endless = epoch->num_open == 0 && !is_over;
  const bool may_grow = epoch->capacity == 0 || (!is_endless && epoch->capacity < EB_EPOCH_MAX_EVENTS);
  if ((may_grow && grow(epoch)) || epoch->num_events == 0) return;
  eb_epoch_cut(epoch, table);
  epoch->is_over = is_over;
  epoch->begin_ticks = epoch->end_ticks;
  eb_epoch_add_step(epoch, &epoch->present);
}
