/* Maps the memory of the node, and gives out blocks of it. */
#include "partitioned/node/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/node/near_ranks.h"
#include "partitioned/node/shared_file.h"
#include "partitioned/process/world.h"

enum { ALIGNMENT = 64, MIN_BYTES = 1024, FIRST_OFFSET = 4096, PAGE_BYTES = 4096 };

/* The beginning of the memory, all zero at first. */
typedef struct {
  _Alignas(ALIGNMENT) _Atomic int64_t taken_bytes; /* by all ranks, from FIRST_OFFSET on */
} pool_header;

/* What this rank has taken. */
struct eb_pool_block {
  eb_pool_block *next, *before;
  int64_t offset, bytes;
  int receiver; /* its place */
};

/* A ring of blocks. */
typedef struct {
  eb_pool_block *first;
} list;

/* Blocks have few different sizes, so that they can be used again: four between a power of two and the next. */
enum { NUM_SIZES = 4 * 64, SIZES_OF_AN_OCTAVE = 4 };

static struct {
  char *memory; /* NULL: none */
  int64_t bytes, pair_bytes;
  list used, left;        /* in use; left by this rank but perhaps not by the receiver */
  list unused[NUM_SIZES]; /* free, by their size */
  int64_t *bytes_of;      /* [ranks of the node] of used and left blocks for this receiver */
} pool;

static bool agree(MPI_Comm node, bool mine) {
  int able = mine, all = 0;
  return PMPI_Allreduce(&able, &all, 1, MPI_INT, MPI_MIN, node) == MPI_SUCCESS && all;
}

/* What this rank needs by itself; the reason why it cannot have it, or NULL. */
static const char *map(int file) {
  if (file < 0 || !(pool.memory = eb_shared_file_map(file, pool.bytes))) return strerror(errno);
  pool.bytes_of = calloc((size_t)eb_near_num(), sizeof *pool.bytes_of);
  return pool.bytes_of ? NULL : strerror(ENOMEM);
}

void eb_pool_begin(MPI_Comm node, int64_t bytes, int64_t pair_bytes, bool is_asked) {
  int rank, file = -1;
  eb_shared_file shared = {0};
  PMPI_Comm_rank(node, &rank);
  if (eb_near_num() == 1) return;
  if (bytes <= FIRST_OFFSET) {
    if (is_asked && rank == 0)
      fprintf(stderr, "earlybird: rank %d: the ranks of this node use messages, because EARLYBIRD_NODE_BYTES is %lld\n",
              eb_world.rank, (long long)bytes);
    return;
  }
  pool.bytes = bytes;
  pool.pair_bytes = pair_bytes;
  if (rank == 0) file = eb_shared_file_create(bytes, &shared);
  const int error = errno;
  PMPI_Bcast(&shared, sizeof shared, MPI_BYTE, 0, node);
  errno = error;
  if (rank != 0 && shared.num_bytes > 0) file = eb_shared_file_open(&shared);
  const char *const reason = map(file);
  if (reason && is_asked && (rank == 0 || shared.num_bytes > 0))
    fprintf(stderr, "earlybird: rank %d: the ranks of this node use messages, because they cannot share memory: %s\n",
            eb_world.rank, reason);
  if (!agree(node, reason == NULL)) eb_pool_end();
  eb_shared_file_close(file);
}

static void put_last(list *to, eb_pool_block *given) {
  if (!to->first) to->first = given->next = given->before = given;
  given->next = to->first;
  given->before = to->first->before;
  given->before->next = given->next->before = given;
}

static void take_out(list *from, eb_pool_block *given) {
  if (from->first == given) from->first = given->next == given ? NULL : given->next;
  given->before->next = given->next;
  given->next->before = given->before;
}

static void free_list(list *of) {
  for (eb_pool_block *given; (given = of->first);) {
    take_out(of, given);
    free(given);
  }
}

void eb_pool_end(void) {
  if (pool.memory) eb_shared_file_unmap(pool.memory, pool.bytes);
  pool.memory = NULL;
  free(pool.bytes_of);
  pool.bytes_of = NULL;
  free_list(&pool.used);
  free_list(&pool.left);
  for (int k = 0; k < NUM_SIZES; k++) free_list(&pool.unused[k]);
}

static int64_t rounded(int64_t bytes) {
  int64_t step = MIN_BYTES / 4;
  while (bytes > 8 * step) step *= 2;
  return bytes <= MIN_BYTES ? MIN_BYTES : (bytes + step - 1) / step * step;
}

/* The place of a rounded size among all. */
static int place_of(int64_t bytes) {
  int64_t step = MIN_BYTES / 4;
  int octave = 0;
  for (; bytes > 8 * step; step *= 2) octave++;
  return SIZES_OF_AN_OCTAVE * octave + (int)(bytes / step) - SIZES_OF_AN_OCTAVE;
}

bool eb_pool_is_shared(void) { return pool.memory != NULL; }

bool eb_pool_may_have(int64_t bytes) {
  return pool.memory && bytes <= pool.pair_bytes && rounded(bytes) <= pool.pair_bytes &&
         rounded(bytes) <= pool.bytes - FIRST_OFFSET;
}

bool eb_pool_may_have_both(int64_t bytes) { return eb_pool_may_have(bytes) && rounded(bytes) <= (pool.bytes - FIRST_OFFSET) / 2; }

void *eb_pool_at(int64_t offset, int64_t bytes) {
  if (!pool.memory || offset < FIRST_OFFSET || offset % ALIGNMENT != 0 || bytes < 0 || bytes > pool.bytes ||
      offset > pool.bytes - bytes)
    return NULL;
  return pool.memory + offset;
}

/* What is read may be written by another thread, whose channel had the block before. */
void eb_pool_touch(const void *block_memory, int64_t bytes) {
  const volatile atomic_char *const first = block_memory;
  for (int64_t at = 0; at < bytes; at += PAGE_BYTES) (void)atomic_load_explicit(first + at, memory_order_relaxed);
}

static bool is_left(const eb_pool_block *given) {
  const eb_block_header *const header = (const eb_block_header *)(pool.memory + given->offset);
  return atomic_load_explicit(&header->is_left, memory_order_acquire);
}

/* Frees blocks that both sides have left, of the next few: each of them is looked at again after all others. */
static void collect(void) {
  enum { NUM_LOOKS = 32 };
  eb_pool_block *const last = pool.left.first ? pool.left.first->before : NULL;
  for (int looks = 0; looks < NUM_LOOKS && pool.left.first; looks++) {
    eb_pool_block *const given = pool.left.first;
    take_out(&pool.left, given);
    if (is_left(given)) {
      pool.bytes_of[given->receiver] -= given->bytes;
      put_last(&pool.unused[place_of(given->bytes)], given);
    } else {
      put_last(&pool.left, given);
    }
    if (given == last) return;
  }
}

/* The smallest unused block of at least `bytes` that is not much larger, and no larger than `most`; NULL: none. */
static eb_pool_block *find_unused(int64_t bytes, int64_t most) {
  enum { MAX_TIMES = 2 };
  const int first = place_of(bytes);
  for (int k = first; k <= first + SIZES_OF_AN_OCTAVE && k < NUM_SIZES; k++) {
    eb_pool_block *const given = pool.unused[k].first;
    if (given) return given->bytes <= MAX_TIMES * bytes && given->bytes <= most ? given : NULL;
  }
  return NULL;
}

static eb_pool_block *take_unused(int64_t bytes, int64_t most) {
  eb_pool_block *const given = find_unused(bytes, most);
  if (given) take_out(&pool.unused[place_of(given->bytes)], given);
  return given;
}

/* The file is as long as it is: what is not there is not taken, by whichever rank. */
static eb_pool_block *take_new(int64_t bytes) {
  _Atomic int64_t *const taken = &((pool_header *)pool.memory)->taken_bytes;
  int64_t before = atomic_load_explicit(taken, memory_order_relaxed);
  do {
    if (before < 0 || before > pool.bytes - FIRST_OFFSET - bytes) return NULL;
  } while (!atomic_compare_exchange_weak_explicit(taken, &before, before + bytes, memory_order_relaxed, memory_order_relaxed));
  eb_pool_block *const given = malloc(sizeof *given);
  if (given) *given = (eb_pool_block){.offset = FIRST_OFFSET + before, .bytes = bytes};
  return given;
}

bool eb_pool_has_room(int receiver, int64_t bytes) {
  if (!eb_pool_may_have(bytes)) return false;
  const int64_t least = rounded(bytes);
  eb_lock();
  collect();
  const int64_t most = pool.pair_bytes - pool.bytes_of[eb_near_place(receiver)];
  const bool is_new_left = atomic_load_explicit(&((pool_header *)pool.memory)->taken_bytes, memory_order_relaxed) <=
                           pool.bytes - FIRST_OFFSET - least;
  const bool has_room = least <= most && (is_new_left || find_unused(least, most));
  eb_unlock();
  return has_room;
}

eb_pool_block *eb_pool_take(int receiver, int64_t bytes) {
  if (!eb_pool_may_have(bytes)) return NULL;
  eb_pool_block *given = NULL;
  const int64_t least = rounded(bytes);
  const int place = eb_near_place(receiver);
  eb_lock();
  collect();
  const int64_t most = pool.pair_bytes - pool.bytes_of[place];
  if (least <= most) {
    given = take_unused(least, most);
    if (!given) given = take_new(least);
  }
  if (given) {
    given->receiver = place;
    pool.bytes_of[place] += given->bytes;
    put_last(&pool.used, given);
  }
  eb_unlock();
  return given;
}

int64_t eb_pool_offset(const eb_pool_block *given) { return given->offset; }

void eb_pool_return(eb_pool_block *given) {
  eb_block_header *const header = eb_pool_at(given->offset, sizeof *header);
  if (header) atomic_store_explicit(&header->is_left, true, memory_order_relaxed);
  eb_pool_leave(given);
}

void eb_pool_leave(eb_pool_block *given) {
  if (!pool.memory) return;
  eb_lock();
  take_out(&pool.used, given);
  put_last(&pool.left, given);
  eb_unlock();
}
