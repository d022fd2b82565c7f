/* Frames: messages of channels that have no tags of their own, because the tags are used up.
 *
 * All frames have one tag, and a header that names the channel, the start and the segment. Their senders send copies, so that
 * nobody waits for the receiver, which takes them off the MPI in its calls of the library and keeps them until their start. */
#ifndef EB_FRAMES_H
#define EB_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "partitioned/wire/buffer.h"

typedef struct {
  int64_t id; /* of the channel, unique among those of its sender */
  uint32_t start;
  int32_t segment;
} eb_frame_header;

/* Unpacks the frame with this header, of num_bytes of data, if it has arrived; makes progress. Returns an MPI code:
 * MPI_ERR_TRUNCATE if it has another number of bytes. */
int eb_frames_take(int source, const eb_frame_header *header, const eb_message_data *into, int64_t num_bytes, bool *done);

/* Drops the frames of a channel whose setup was refused, among them `num` that may have been sent already. */
void eb_frames_discard(int source, int64_t id, int num);
/* Those that have not arrived yet. */
int eb_frames_num_unwanted(void);

/* Takes the frames that have arrived off the MPI. */
void eb_frames_progress(void);
void eb_frames_end(void);

#endif
