/* Sends one segment of a channel. */
#ifndef EB_SEND_H
#define EB_SEND_H

#include "partitioned/channel/parts.h"

/* By one thread at a time for each sending lane, unless eb_wire_sends_alone. True for the last segment of the start: from then on the channel may be started
 * again, or freed. */
bool eb_channel_send(eb_channel *channel, int segment);

#endif
