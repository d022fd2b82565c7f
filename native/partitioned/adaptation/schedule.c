/* When a request searches its segments: at its beginning, once more a little later, and when the program has changed. */
#include "partitioned/adaptation/schedule.h"

enum { FIRST = 2, SMALL_FIRST = 16, STEP = 256, SMALL_STEP = 2048 };
/* Of a request that has borrowed a result: it may not hold for this one's memory, so a long-lived request searches itself. */
enum { AFTER_BORROWED = 32 };
/* The first messages of a size may be slow by themselves: the first 20 to 40 take Intel MPI 20 times as long in shared memory. */
enum { REPEATED = 48 };
/* Starts from a search that is doubted to the one that must agree with it. */
enum { CONFIRMED_AFTER = 8 };

uint64_t eb_schedule_first(bool is_small) { return is_small ? SMALL_FIRST : FIRST; }

/* The starts before a check are observed. */
static uint64_t next_check(uint64_t start, bool is_small) {
  const uint64_t step = is_small ? SMALL_STEP : STEP, from = start + EB_SCHEDULE_NUM_OBSERVED;
  return from < REPEATED && !is_small ? REPEATED : from / step * step + step;
}

uint64_t eb_schedule_next(uint64_t start, bool is_small, eb_schedule_state state) {
  switch (state) {
    case EB_SCHEDULE_SEARCHING: return start + 1;
    case EB_SCHEDULE_DOUBTED: return start + CONFIRMED_AFTER;
    case EB_SCHEDULE_BORROWED: return AFTER_BORROWED;
    default: return next_check(start, is_small);
  }
}

bool eb_schedule_begins_search(uint64_t start) { return start <= AFTER_BORROWED || start == REPEATED; }
