/* Completing channels on behalf of the completion calls. */
#ifndef EB_COMPLETE_H
#define EB_COMPLETE_H

#include "partitioned/channel.h"

/* Raises a code that the core returned, with a sentence where we have one; returns what the call returns. */
int eb_raise_for(eb_channel *channel, int code);

#endif
