/* Receives frames and keeps them until their channels take them. */
#include "partitioned/wire/frames.h"

#include <mpi.h>
#include <stddef.h>
#include <stdlib.h>

#include "partitioned/domain/domain.h"
#include "partitioned/process/world.h"

typedef struct frame {
  struct frame *next;
  MPI_Request request; /* while it arrives */
  int source;
  int64_t num_bytes; /* of the data */
  eb_frame_header header;
  char data[]; /* received together with the header */
} frame;

_Static_assert(offsetof(frame, data) == offsetof(frame, header) + sizeof(eb_frame_header), "a frame is received in one piece");

typedef struct refused {
  struct refused *next;
  int source, num_left;
  int64_t id;
} refused;

enum { NUM_BUCKETS = 1024 };

static frame *arriving, *arrived[NUM_BUCKETS];
static refused *refused_channels;
static int num_unwanted;

static frame **bucket_of(int source, const eb_frame_header *header) {
  uint64_t hash = (uint64_t)header->id << 20 ^ (uint64_t)(uint32_t)source << 40 ^ (uint64_t)(uint32_t)header->segment;
  hash *= UINT64_C(0x9E3779B97F4A7C15);
  return &arrived[hash >> 32 & (NUM_BUCKETS - 1)];
}

/* Under eb_lock. */
static bool is_refused(const frame *of) {
  for (refused *channel = refused_channels; channel; channel = channel->next) {
    if (channel->source != of->source || channel->id != of->header.id) continue;
    if (channel->num_left > 0) channel->num_left--, num_unwanted--;
    return true;
  }
  return false;
}

/* Under eb_lock. */
static void file(frame *complete) {
  if (is_refused(complete)) {
    free(complete);
    return;
  }
  frame **const bucket = bucket_of(complete->source, &complete->header);
  complete->next = *bucket;
  *bucket = complete;
}

/* Under eb_lock: the next frame that has begun to arrive, or NULL. */
static frame *receive_next(void) {
  MPI_Message message;
  MPI_Status status;
  int is_there = 0, num_bytes = 0;
  const int tag = eb_tags_control(&eb_domain.tags, EB_CONTROL_FRAME);
  if (PMPI_Improbe(MPI_ANY_SOURCE, tag, eb_domain.comm, &is_there, &message, &status) != MPI_SUCCESS || !is_there) return NULL;
  if (PMPI_Get_count(&status, MPI_BYTE, &num_bytes) != MPI_SUCCESS) return NULL;
  frame *const made = malloc(offsetof(frame, header) + (size_t)num_bytes);
  if (!made) eb_abort(EB_NO_MEMORY); /* a lost frame would hang the job */
  made->source = status.MPI_SOURCE;
  made->num_bytes = num_bytes - (int64_t)sizeof made->header;
  if (PMPI_Imrecv(&made->header, num_bytes, MPI_BYTE, &message, &made->request) != MPI_SUCCESS)
    eb_abort("cannot receive a message of partitioned communication while other ranks wait for this rank");
  return made;
}

void eb_frames_progress(void) {
  eb_lock();
  for (frame *next; (next = receive_next());) {
    next->next = arriving;
    arriving = next;
  }
  for (frame **at = &arriving; *at;) {
    frame *const tested = *at;
    int is_complete = 0;
    PMPI_Test(&tested->request, &is_complete, MPI_STATUS_IGNORE);
    if (is_complete) {
      *at = tested->next;
      file(tested);
    } else {
      at = &tested->next;
    }
  }
  eb_unlock();
}

/* Under eb_lock. */
static frame *find(int source, const eb_frame_header *header) {
  for (frame **at = bucket_of(source, header); *at; at = &(*at)->next) {
    frame *const kept = *at;
    if (kept->source != source || kept->header.id != header->id || kept->header.start != header->start ||
        kept->header.segment != header->segment)
      continue;
    *at = kept->next;
    return kept;
  }
  return NULL;
}

int eb_frames_take(int source, const eb_frame_header *header, const eb_message_data *into, int64_t num_bytes, bool *done) {
  eb_lock();
  frame *taken = find(source, header);
  if (!taken) {
    eb_frames_progress();
    taken = find(source, header);
  }
  eb_unlock();
  *done = taken != NULL;
  if (!taken) return MPI_SUCCESS;
  int rc = taken->num_bytes == num_bytes ? MPI_SUCCESS : MPI_ERR_TRUNCATE, at = 0;
  /* By the MPI, because the memory may be a device's: see send_queue.c. */
  if (rc == MPI_SUCCESS && num_bytes > 0)
    rc = PMPI_Unpack(taken->data, (int)num_bytes, &at, into->address, into->count, into->type, eb_domain.comm);
  free(taken);
  return rc;
}

void eb_frames_discard(int source, int64_t id, int num) {
  refused *const made = malloc(sizeof *made);
  if (!made) eb_abort(EB_NO_MEMORY);
  eb_lock();
  *made = (refused){refused_channels, source, num, id};
  refused_channels = made;
  num_unwanted += num;
  for (int b = 0; b < NUM_BUCKETS; b++) { /* those that are here already */
    frame *kept = arrived[b];
    arrived[b] = NULL;
    while (kept) {
      frame *const next = kept->next;
      file(kept);
      kept = next;
    }
  }
  eb_unlock();
}

int eb_frames_num_unwanted(void) { return num_unwanted; }

/* Frames that are still arriving stay, because the MPI may write them. */
void eb_frames_end(void) {
  for (int b = 0; b < NUM_BUCKETS; b++) {
    for (frame *next; arrived[b]; arrived[b] = next) {
      next = arrived[b]->next;
      free(arrived[b]);
    }
  }
  for (refused *next; refused_channels; refused_channels = next) {
    next = refused_channels->next;
    free(refused_channels);
  }
  num_unwanted = 0;
}
