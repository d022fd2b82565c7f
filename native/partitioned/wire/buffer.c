/* Distinguishes contiguous types from others, and packs the others. */
#include "partitioned/wire/buffer.h"

#include <limits.h>
#include <stdlib.h>

#include "partitioned/domain/domain.h"

/* MPI 3.1's pack calls take an int of bytes. */
#define PACK_MAX_BYTES (INT64_C(1) << 30)

/* A type's constructor; false when it was made with large counts, of which the older call makes an error. */
static bool envelope_of(MPI_Datatype type, int *num_integers, int *num_types, int *combiner) {
#ifdef EB_HAS_TYPE_ENVELOPE_C
  MPI_Count integers, addresses, large_counts, types;
  if (PMPI_Type_get_envelope_c(type, &integers, &addresses, &large_counts, &types, combiner) != MPI_SUCCESS) return false;
  *num_integers = (int)integers;
  *num_types = (int)types;
  return large_counts == 0 && addresses == 0 && integers <= 1;
#else
  int addresses;
  return PMPI_Type_get_envelope(type, num_integers, &addresses, num_types, combiner) == MPI_SUCCESS && addresses == 0 &&
         *num_integers <= 1;
#endif
}

/* Is an array of the type contiguous and in order? Size and extents are not sufficient: an indexed type may permute. */
static bool is_plain(MPI_Datatype type) {
  int num_integers, num_types, combiner, size;
  MPI_Aint lower_bound, extent;
  if (!envelope_of(type, &num_integers, &num_types, &combiner)) return false;
  if (combiner == MPI_COMBINER_NAMED)
    return PMPI_Type_size(type, &size) == MPI_SUCCESS && PMPI_Type_get_extent(type, &lower_bound, &extent) == MPI_SUCCESS &&
           lower_bound == 0 && extent == size;
  if ((combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP) || num_types != 1) return false;
  int integers[1];
  MPI_Aint addresses[1];
  MPI_Datatype inner;
  if (PMPI_Type_get_contents(type, num_integers, 0, 1, integers, addresses, &inner) != MPI_SUCCESS) return false;
  const bool plain = is_plain(inner);
  /* A named type is no new reference and must not be freed (MPI 4.1 section 5.1.13). */
  const bool is_known = envelope_of(inner, &num_integers, &num_types, &combiner);
  if (!is_known || combiner != MPI_COMBINER_NAMED) PMPI_Type_free(&inner);
  return plain;
}

/* No process can have a larger buffer, and 1 GiB for each segment would be segments without end. */
#define MAX_TOTAL_BYTES (INT64_C(1) << 48)

/* The bytes of a partition and of the transfer; false if no buffer holds the elements. */
static bool multiply(MPI_Count count, MPI_Count size, MPI_Aint extent, eb_transfer *transfer) {
  int64_t part_extent, extents;
  if (count == 0 || size == 0) return true;
  if (size < 0) return false; /* MPI_UNDEFINED: of more bytes than an MPI_Count can express */
  return !__builtin_mul_overflow((int64_t)count, (int64_t)size, &transfer->partition_bytes) &&
         !__builtin_mul_overflow(transfer->partition_bytes, (int64_t)transfer->num_partitions, &transfer->total_bytes) &&
         !__builtin_mul_overflow((int64_t)count, (int64_t)extent, &part_extent) &&
         !__builtin_mul_overflow(part_extent, (int64_t)transfer->num_partitions, &extents) &&
         transfer->total_bytes <= MAX_TOTAL_BYTES && extents <= MAX_TOTAL_BYTES && extents >= -MAX_TOTAL_BYTES;
}

int eb_buffer_begin(eb_buffer *buffer, void *user, MPI_Count count, MPI_Datatype type, eb_transfer *transfer) {
  MPI_Count size;
  MPI_Aint lower_bound;
  int rc = PMPI_Type_size_x(type, &size);
  if (rc != MPI_SUCCESS) return rc;
  if ((rc = PMPI_Type_get_extent(type, &lower_bound, &buffer->extent)) != MPI_SUCCESS) return rc;
  const bool is_expressible = multiply(count, size, buffer->extent, transfer);
  /* No data travels to or from MPI_PROC_NULL, and its buffer must stay as it is (MPI 4.1 section 3.10). */
  if (eb_transfer_is_null(transfer)) transfer->partition_bytes = transfer->total_bytes = 0;
  else if (!is_expressible) return MPI_ERR_COUNT;
  buffer->user = user;
  buffer->count = count;
  buffer->element_bytes = size;
  buffer->partition_bytes = transfer->partition_bytes;
  if (transfer->total_bytes == 0 || is_plain(type)) return MPI_SUCCESS;
  if (size > INT_MAX) return MPI_ERR_TYPE; /* more than the pack calls can take at once */
  buffer->staging = malloc((size_t)transfer->total_bytes);
  if (!buffer->staging) return MPI_ERR_NO_MEM;
  buffer->is_staged = true;
  /* The user may free theirs. Not MPI_Type_dup: that would run the copy callbacks of the user's attributes. */
  if ((rc = PMPI_Type_contiguous(1, type, &buffer->type)) != MPI_SUCCESS) return rc;
  buffer->has_type = true;
  return PMPI_Type_commit(&buffer->type);
}

void eb_buffer_end(eb_buffer *buffer) {
  if (buffer->has_type) PMPI_Type_free(&buffer->type);
  buffer->has_type = false;
  free(buffer->staging);
  buffer->staging = NULL;
  buffer->is_staged = false;
}

void eb_buffer_set_staged(eb_buffer *buffer, bool is_staged) { buffer->is_staged = buffer->has_type && is_staged; }

eb_message_data eb_buffer_data(const eb_buffer *buffer, int64_t first_byte, int64_t num_bytes) {
  if (buffer->is_staged) return (eb_message_data){buffer->staging + first_byte, (int)num_bytes, MPI_BYTE};
  if (!buffer->has_type) return (eb_message_data){buffer->user + first_byte, (int)num_bytes, MPI_BYTE};
  const MPI_Aint begin = (MPI_Aint)(first_byte / buffer->element_bytes) * buffer->extent;
  return (eb_message_data){buffer->user + begin, (int)(num_bytes / buffer->element_bytes), buffer->type};
}

char *eb_buffer_staging(const eb_buffer *buffer) { return buffer->staging; }

void eb_buffer_disown_staging(eb_buffer *buffer) {
  buffer->staging = NULL;
  buffer->is_staged = false;
}

static int move(const eb_buffer *buffer, int partition, bool packs) {
  char *user = buffer->user + (MPI_Aint)partition * buffer->count * buffer->extent;
  char *packed = buffer->staging + (int64_t)partition * buffer->partition_bytes;
  const int64_t most = PACK_MAX_BYTES / buffer->element_bytes > 0 ? PACK_MAX_BYTES / buffer->element_bytes : 1;
  for (int64_t left = buffer->count; left > 0;) {
    const int now = (int)(left < most ? left : most);
    const int bytes = (int)(now * buffer->element_bytes);
    int at = 0;
    const int rc = packs ? PMPI_Pack(user, now, buffer->type, packed, bytes, &at, eb_domain.comm)
                         : PMPI_Unpack(packed, bytes, &at, user, now, buffer->type, eb_domain.comm);
    if (rc != MPI_SUCCESS) return rc;
    user += now * buffer->extent;
    packed += bytes;
    left -= now;
  }
  return MPI_SUCCESS;
}

int eb_buffer_pack(const eb_buffer *buffer, int partition) { return move(buffer, partition, true); }

int eb_buffer_unpack(const eb_buffer *buffer, int partition) { return move(buffer, partition, false); }
