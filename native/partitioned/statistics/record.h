/* Records for EARLYBIRD_TRACE (events of a timeline) and EARLYBIRD_STATS (sums of a table). */
#ifndef EB_RECORD_H
#define EB_RECORD_H

#include "partitioned/channel/channel.h"

/* Is either enabled? The functions below are called only then (eb_record_made checks it itself). */
extern bool eb_record_on;

void eb_record_begin(void);
/* Writes the trace and prints the table; collective over the domain. */
void eb_record_end(void);

void eb_record_made(const eb_channel *channel);
void eb_record_pready(eb_channel *channel, int partition);
void eb_record_segment_sent(eb_channel *channel, int segment, double begin_s);
void eb_record_segment_arrived(const eb_channel *channel, int segment);
void eb_record_waited(const eb_channel *channel, double begin_s);
void eb_record_finished(const eb_channel *channel);

#endif
