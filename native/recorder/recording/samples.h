/* Real epochs of a phase, for programs whose partners rotate: the sum over epochs is then an exchange that never happened.
 *
 * All of the first epochs are kept, and of the others a part that depends on the number of the epoch alone, so that it is the
 * same on all ranks: those with a small hash, of which the limit is halved when there are too many. Every second, fourth, ...
 * epoch would show nothing of partners that rotate in twos and fours.
 */
#ifndef EB_SAMPLES_H
#define EB_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "recorder/recording/file.h"
#include "recorder/recording/table.h"

enum { EB_SAMPLES_FIRST = 8, EB_SAMPLES_MAX = 256 };

/* An addition to an entry whose phase is not known yet. */
typedef struct {
  uint64_t what; /* with phase 0 */
  int32_t peer;
  uint32_t messages;
  uint64_t calls, bytes, ticks;
} eb_event;

/* Of one phase and thread, which alone adds to them. */
typedef struct eb_samples eb_samples;

uint64_t eb_samples_hash(uint64_t epoch);

/* Adds an epoch, from 0 within the phase, if it is one of those. *samples is created where it is NULL. */
void eb_samples_add(eb_samples **samples, uint64_t epoch, const eb_event *events, uint32_t num_events);

/* The epoch is none that other ranks have, too: no more are kept, as their numbers would not be those of other ranks. */
void eb_samples_give_up(eb_samples **samples, uint64_t epoch);

/* Is it time to write them? At the end, and when there are twice as many epochs as the last time. */
bool eb_samples_are_due(const eb_samples *samples, bool is_end);

/* The members "complete", "sampled" and "variants" of a JSON object. False: another thread holds them. */
bool eb_samples_print(eb_samples *samples, eb_payload *payload);

#endif
