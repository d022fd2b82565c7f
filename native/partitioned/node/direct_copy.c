/* Has the system copy chunk after chunk. */
#include "partitioned/node/direct_copy.h"

static bool copy_chunk(const eb_direct *direct, const eb_peer *peer, const eb_direct_part *part, int chunk) {
  const int64_t chunk_bytes = eb_direct_chunk_bytes(part->num_bytes), within = chunk * chunk_bytes;
  const int64_t left = part->num_bytes - within, at = part->first_byte + within;
  const size_t num_bytes = (size_t)(left < chunk_bytes ? left : chunk_bytes);
  const uint64_t theirs = eb_direct_other_memory(direct) + (uint64_t)at;
  char *const ours = part->bytes + at;
  return (direct->is_send ? eb_peer_write(peer, theirs, ours, num_bytes) : eb_peer_read(peer, theirs, ours, num_bytes)) == 0;
}

int eb_direct_copy(eb_direct *direct, const eb_peer *peer, const eb_direct_part *part, int most) {
  const int num_chunks = eb_direct_num_chunks(part->num_bytes);
  int num = 0;
  for (int chunk; num < most && (chunk = eb_direct_claim(direct, part->start, part->segment, num_chunks)) >= 0; num++)
    eb_direct_finish(direct, part->segment, copy_chunk(direct, peer, part, chunk));
  return num;
}
