/* The user's memory: contiguous bytes, or a type with gaps that is packed and unpacked partition by partition. */
#ifndef EB_BUFFER_H
#define EB_BUFFER_H

#include "partitioned/channel/channel.h"

/* Sets the channel's buffer members from its arguments; returns an MPI code. */
int eb_buffer_begin(eb_channel *channel, void *buffer, int num_partitions, MPI_Count count, MPI_Datatype type);
void eb_buffer_end(eb_channel *channel);

/* The address of byte 0 of the transfer. */
char *eb_buffer_wire(const eb_channel *channel);

/* Packs or unpacks one partition; no effect without a staging buffer. */
int eb_buffer_pack(eb_channel *channel, int partition);
int eb_buffer_unpack(eb_channel *channel, int partition);

#endif
