/* In which starts a request exchanges segmentation messages and begins searches. Uses no MPI. */
#ifndef EB_SCHEDULE_H
#define EB_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* Starts before a segmentation message whose times are taken: the feedback of a start is there two starts later. */
enum { EB_SCHEDULE_NUM_OBSERVED = 4 };

typedef enum {
  EB_SCHEDULE_SEARCHING, /* the next start tries a candidate */
  EB_SCHEDULE_DOUBTED,   /* the search has ended; another one must agree with it */
  EB_SCHEDULE_BORROWED,  /* no search: the result of an earlier request is used */
  EB_SCHEDULE_ENDED      /* the search has ended, or none was begun */
} eb_schedule_state;

/* Small transfers gain only where a receiver uses partitions long before the last one is ready: requests that are started a few
 * times are spared, and checks are rarer. Both sides know the start of the first message. */
uint64_t eb_schedule_first(bool is_small);

/* The start that has the next message, given the state after the one of `start`. */
uint64_t eb_schedule_next(uint64_t start, bool is_small, eb_schedule_state state);

/* Does a search begin in this start, which has a message, whether the program has changed or not? */
bool eb_schedule_begins_search(uint64_t start);

#endif
