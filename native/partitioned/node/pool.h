/* Memory that the ranks of a node share: one anonymous file, which each of them maps. It has no name, so a job that is killed leaves
 * nothing.
 *
 * Each rank takes memory from the file for good, without a lock, and manages by itself what it has taken: a rank that dies
 * disturbs no other one. A block is that of a sender and its receiver, and is used again when both have left it. */
#ifndef EB_POOL_H
#define EB_POOL_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/node/block.h"

/* Creates and maps the memory; collective over the ranks of a node, which near_ranks.h knows: all or none of them have it afterwards.
 * pair_bytes: the most that blocks of this rank for one other rank may take. is_asked: the user has asked for it, so a rank that cannot
 * share memory prints a message. */
void eb_pool_begin(MPI_Comm node, int64_t bytes, int64_t pair_bytes, bool is_asked);
void eb_pool_end(void);

/* Is there such memory? */
bool eb_pool_is_shared(void);
/* And is it large enough for a block? */
bool eb_pool_may_have(int64_t bytes);
/* And for two, one for each direction between two ranks? */
bool eb_pool_may_have_both(int64_t bytes);

/* A block of this rank. */
typedef struct eb_pool_block eb_pool_block;

/* Would a block for transfers to a rank be given now? */
bool eb_pool_has_room(int receiver, int64_t bytes);
/* Takes a block for transfers to a rank of the domain on this node; NULL if there is no memory left. */
eb_pool_block *eb_pool_take(int receiver, int64_t bytes);
/* Where it is in the memory. */
int64_t eb_pool_offset(const eb_pool_block *block);
/* The sender has left the block, which is now the pool's. */
void eb_pool_leave(eb_pool_block *block);
/* The same, where no receiver knows of it. */
void eb_pool_return(eb_pool_block *block);

/* The address of a block; NULL for what cannot be one. */
void *eb_pool_at(int64_t offset, int64_t bytes);
/* Makes the system provide the pages near this processor, if no one has used them before. */
void eb_pool_touch(const void *block_memory, int64_t bytes);

#endif
