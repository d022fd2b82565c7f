/* The events of a timeline (EARLYBIRD_TRACE). */
#ifndef EB_TRACE_H
#define EB_TRACE_H

#include <stdbool.h>

bool eb_trace_is_on(void);

/* Adds an event of this thread, if the trace is on; `arguments` are JSON members. A negative duration: a moment. */
void eb_trace_event(const char *name, const char *arguments, double begin_s, double duration_s);

void eb_trace_begin(void);
/* Writes the trace; collective over the domain. */
void eb_trace_end(void);

#endif
