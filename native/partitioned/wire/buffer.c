/* Tells contiguous types from others, and packs the others. */
#include "partitioned/wire/buffer.h"

#include <limits.h>
#include <stdlib.h>

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

int eb_buffer_begin(eb_channel *channel, void *buffer, int num_partitions, MPI_Count count, MPI_Datatype type) {
  MPI_Count size;
  MPI_Aint lower_bound;
  int rc = PMPI_Type_size_x(type, &size);
  if (rc != MPI_SUCCESS) return rc;
  if ((rc = PMPI_Type_get_extent(type, &lower_bound, &channel->extent)) != MPI_SUCCESS) return rc;
  channel->buffer = buffer;
  channel->num_partitions = num_partitions;
  channel->count = count;
  channel->element_bytes = size;
  channel->type = MPI_DATATYPE_NULL;
  if (__builtin_mul_overflow((int64_t)count, (int64_t)size, &channel->partition_bytes) ||
      __builtin_mul_overflow(channel->partition_bytes, (int64_t)num_partitions, &channel->total_bytes))
    return MPI_ERR_COUNT;
  /* Nothing travels to or from MPI_PROC_NULL, and its buffer must stay as it is (MPI 4.1 section 3.10). */
  if (channel->total_bytes == 0 || channel->peer == MPI_PROC_NULL || is_plain(type)) return MPI_SUCCESS;
  if (size > INT_MAX) return MPI_ERR_TYPE; /* more than the pack calls can take at once */
  channel->staging = malloc((size_t)channel->total_bytes);
  if (!channel->staging) return MPI_ERR_NO_MEM;
  /* The user may free theirs. Not MPI_Type_dup: that would run the copy callbacks of the user's attributes. */
  if ((rc = PMPI_Type_contiguous(1, type, &channel->type)) != MPI_SUCCESS) return rc;
  return PMPI_Type_commit(&channel->type);
}

void eb_buffer_end(eb_channel *channel) {
  if (channel->type != MPI_DATATYPE_NULL) PMPI_Type_free(&channel->type);
  free(channel->staging);
  channel->staging = NULL;
}

char *eb_buffer_wire(const eb_channel *channel) { return channel->staging ? channel->staging : channel->buffer; }

static int move(eb_channel *channel, int partition, bool packs) {
  char *user = channel->buffer + (MPI_Aint)partition * channel->count * channel->extent;
  char *packed = channel->staging + (int64_t)partition * channel->partition_bytes;
  const int64_t most = PACK_MAX_BYTES / channel->element_bytes > 0 ? PACK_MAX_BYTES / channel->element_bytes : 1;
  for (int64_t left = channel->count; left > 0;) {
    const int now = (int)(left < most ? left : most);
    const int bytes = (int)(now * channel->element_bytes);
    int at = 0;
    const int rc =
        packs ? PMPI_Pack(user, now, channel->type, packed, bytes, &at, eb_domain.comm)
              : PMPI_Unpack(packed, bytes, &at, user, now, channel->type, eb_domain.comm);
    if (rc != MPI_SUCCESS) return rc;
    user += now * channel->extent;
    packed += bytes;
    left -= now;
  }
  return MPI_SUCCESS;
}

int eb_buffer_pack(eb_channel *channel, int partition) {
  return channel->staging ? move(channel, partition, true) : MPI_SUCCESS;
}

int eb_buffer_unpack(eb_channel *channel, int partition) {
  return channel->staging ? move(channel, partition, false) : MPI_SUCCESS;
}
