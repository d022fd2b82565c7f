/* What a message costs: the fitted protocols of one level. Knows no MPI.
 *
 * The formula is that of src/earlybird/models (postal model with protocols): the protocol of a message is the last
 * one whose min_bytes it reaches, its time latency_s + bytes / bandwidth.
 */
#ifndef EB_COST_H
#define EB_COST_H

#include <stdbool.h>
#include <stdint.h>

enum { EB_COST_MAX_PROTOCOLS = 16 };

typedef struct {
  int64_t min_bytes;
  double latency_s;
  double overhead_s; /* what one more message adds to a train of them */
  double bandwidth_bytes_per_s;
} eb_protocol;

typedef struct {
  int num; /* 0: nothing is known */
  eb_protocol protocols[EB_COST_MAX_PROTOCOLS]; /* ascending min_bytes, the first 0 */
} eb_cost;

/* Seconds until a single message of this size has arrived. */
double eb_cost_time_s(const eb_cost *cost, int64_t bytes);
/* Seconds that the sender is busy with it before it can send the next. */
double eb_cost_overhead_s(const eb_cost *cost, int64_t bytes);
/* Seconds of a core that it takes: as many at least as a shorter one. A link that carries short trains faster than long ones
 * hides in the overhead what their messages cost the cores. */
double eb_cost_core_s(const eb_cost *cost, int64_t bytes);
/* The bandwidth of long trains and of what a message has beyond the last protocol's begin. */
double eb_cost_bandwidth_bytes_per_s(const eb_cost *cost);

/* Reads "MIN:LATENCY_S:OVERHEAD_S:BANDWIDTH,..."; false, and *cost as it was, when the text is no such list. */
bool eb_cost_parse(const char *text, int length, eb_cost *cost);

/* Writes the same with so many significant digits; returns the length, or -1 if it does not fit. Numbers have the decimal point
 * of the calling thread's locale. */
int eb_cost_print(const eb_cost *cost, int digits, char *text, int size);

/* Do two spans between ready times of a transfer, which takes message_s in one message, differ by little? */
bool eb_cost_is_alike(double a_s, double b_s, double message_s);

#endif
