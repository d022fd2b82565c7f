/* Completing channels on behalf of the completion calls. */
#ifndef EB_COMPLETE_H
#define EB_COMPLETE_H

#include "partitioned/channel/channel.h"

/* Raises a code that the core returned, with a message if there is one; returns the result of the MPI call. */
int eb_raise_for(eb_channel *channel, int code);

#endif
