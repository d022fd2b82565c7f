/* What each block of the memory that ranks of a node share begins with. */
#ifndef EB_BLOCK_H
#define EB_BLOCK_H

#include <stdatomic.h>

typedef struct {
  _Alignas(64) atomic_bool is_left; /* by the receiver */
} eb_block_header;

#endif
