/* The user's memory: contiguous bytes, or a type with gaps. Of these, requests with small messages only are sent as they are, and
 * the MPI packs them; others are packed and unpacked here, partition by partition. */
#ifndef EB_BUFFER_H
#define EB_BUFFER_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "partitioned/domain/transfer.h"

/* The members belong to buffer.c. All zero: no buffer. */
typedef struct {
  char *user;
  char *staging; /* for the packed bytes of a type with gaps; otherwise NULL */
  bool is_staged; /* the messages are those packed bytes */
  bool has_type;
  MPI_Datatype type; /* our duplicate */
  MPI_Count count;   /* of a partition */
  MPI_Aint extent;
  int64_t element_bytes, partition_bytes;
} eb_buffer;

/* Sets the buffer, and the sizes of the transfer, whose peer and number of partitions must be set. Returns an MPI code. */
int eb_buffer_begin(eb_buffer *buffer, void *user, MPI_Count count, MPI_Datatype type, eb_transfer *transfer);
void eb_buffer_end(eb_buffer *buffer);

/* Selects what messages are made of: the packed bytes, or the program's memory. No effect without gaps. */
void eb_buffer_set_staged(eb_buffer *buffer, bool is_staged);
static inline bool eb_buffer_is_staged(const eb_buffer *buffer) { return buffer->is_staged; }
static inline bool eb_buffer_is_packed_by_mpi(const eb_buffer *buffer) { return buffer->has_type && !buffer->is_staged; }

/* What a message is made of: at most 1 GiB from a byte of the transfer on. If the buffer has gaps and is not staged, whole
 * partitions. */
typedef struct {
  char *address;
  int count;
  MPI_Datatype type;
} eb_message_data;

eb_message_data eb_buffer_data(const eb_buffer *buffer, int64_t first_byte, int64_t num_bytes);

/* The staging memory, or NULL. It stays the buffer's, unless it is disowned: then the caller frees it. */
char *eb_buffer_staging(const eb_buffer *buffer);
void eb_buffer_disown_staging(eb_buffer *buffer);

/* Packs or unpacks one partition of a buffer with gaps, to or from the staging memory. Returns an MPI code. */
int eb_buffer_pack(const eb_buffer *buffer, int partition);
int eb_buffer_unpack(const eb_buffer *buffer, int partition);

#endif
