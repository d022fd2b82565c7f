/* What a program has in the place of the node's memory, of buffers and of the MPI, to use both sides of a channel in one process: ring or
 * direct. Before it is included: `node`, the memory of the one block that there is. */
#include <stdio.h>
#include <stdlib.h>

#include "partitioned/domain/domain.h"
#include "partitioned/node/pool.h"
#include "partitioned/wire/buffer.h"

static bool is_short; /* no more memory is allocated */
static int num_left; /* blocks that the sender has left */

eb_domain_state eb_domain;
eb_world_state eb_world;

void *malloc_or_refuse(size_t num_bytes);
void *malloc_or_refuse(size_t num_bytes) { return is_short ? NULL : calloc(1, num_bytes); }

bool eb_pool_may_have(int64_t bytes) { return bytes <= (int64_t)sizeof node; }
bool eb_pool_has_room(int receiver, int64_t bytes) { return (void)receiver, eb_pool_may_have(bytes); }
eb_pool_block *eb_pool_take(int receiver, int64_t bytes) { return (void)receiver, (void)bytes, (eb_pool_block *)&node; }
int64_t eb_pool_offset(const eb_pool_block *block) { return (void)block, 0; }
void eb_pool_leave(eb_pool_block *block) { (void)block, num_left++; }
void eb_pool_return(eb_pool_block *block) { (void)block; }
void *eb_pool_at(int64_t offset, int64_t bytes) { return offset == 0 && eb_pool_may_have(bytes) ? &node : NULL; }
void eb_pool_touch(const void *block_memory, int64_t bytes) { (void)block_memory, (void)bytes; }
char *eb_buffer_staging(const eb_buffer *buffer) { return buffer->staging; }
eb_message_data eb_buffer_data(const eb_buffer *buffer, int64_t first_byte, int64_t num_bytes) {
  return (eb_message_data){buffer->user + first_byte, (int)num_bytes, MPI_BYTE};
}

static void expect(bool is_so, const char *what) {
  if (is_so) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}
