/* What EARLYBIRD_STATS prints: sums of all channels; and the channels' events for EARLYBIRD_TRACE. */
#ifndef EB_STATISTICS_H
#define EB_STATISTICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/domain/transfer.h"

/* A channel's part. The members belong to statistics.c. */
typedef struct {
  const eb_transfer *transfer;
  uint64_t start;
  unsigned paths_used; /* bits */
  double begin_s;      /* of the start */
  _Atomic double sent_after_s; /* summed over the segments sent since: their times from begin_s */
  _Atomic double last_pready_s;
} eb_statistics;

/* Is either enabled? */
extern bool eb_statistics_on;

void eb_statistics_begin(void);
/* Prints the table, with the remark unless it is NULL, and writes the trace; collective over the domain. */
void eb_statistics_end(const char *remark);

/* The transfer must stay valid. */
void eb_statistics_created(eb_statistics *statistics, const eb_transfer *transfer);

/* Call these only if eb_statistics_on. */
void eb_statistics_started(eb_statistics *statistics, uint64_t start);
void eb_statistics_pready(eb_statistics *statistics, int partition);
void eb_statistics_segment_sent(eb_statistics *statistics, int segment, int64_t bytes, double begin_s);
void eb_statistics_segment_arrived(const eb_statistics *statistics, int segment, int64_t bytes);
/* A segment has been sent on a lane; a segment found its lane's lock taken, and was left to the thread that has it. */
void eb_statistics_lane_used(int lane);
void eb_statistics_lane_taken(int lane);
void eb_statistics_waited(const eb_statistics *statistics, int num_segments, double begin_s);
void eb_statistics_finished(eb_statistics *statistics, int num_segments, eb_path path);

#endif
