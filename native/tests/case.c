/* The pattern, the sides of a transfer and the ring that the families of cases are written with. */
#include "case.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

int error_class(int code) {
  int class = MPI_ERR_UNKNOWN;
  return MPI_Error_class(code, &class) == MPI_SUCCESS ? class : MPI_ERR_UNKNOWN;
}

void case_mpi_failed(const char *file, int line, const char *call, int code) {
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) text[0] = 0;
  for (char *c = text; *c; c++)
    if (*c == '\n') *c = ' ';
  case_fail(file, line, "%.60s returned %d: %.250s", call, code, text);
}

/* splitmix64 */
static inline __attribute__((always_inline)) uint64_t mix(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

uint64_t random_next(uint64_t *state) { return mix(*state += 0x9e3779b97f4a7c15u); }

int random_below(uint64_t *state, int bound) { return (int)(random_next(state) % (uint64_t)bound); }

void random_shuffle(uint64_t *state, int *values, int count) {
  for (int i = count - 1; i > 0; i--) {
    const int j = random_below(state, i + 1), kept = values[i];
    values[i] = values[j];
    values[j] = kept;
  }
}

static inline __attribute__((always_inline)) uint64_t pattern_word(size_t index, uint64_t iteration, uint64_t channel) {
  return mix(index * 0xd1342543de82ef95u + iteration * 0x2545f4914f6cdd1du + channel * 0xaf251af3b0f025b5u + 0x9e3779b97f4a7c15u);
}

/* Memory is written and compared in blocks: sanitizers look at every access. */
enum { BLOCK_WORDS = 512, BLOCK_BYTES = 8 * BLOCK_WORDS };

static void pattern_block(uint64_t *words, size_t from, size_t to, uint64_t iteration, uint64_t channel) {
  for (size_t w = 0; 8 * w < to - from; w++) words[w] = pattern_word(from / 8 + w, iteration, channel);
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

void pattern_fill(unsigned char *bytes, size_t size, uint64_t iteration, uint64_t channel) {
  uint64_t words[BLOCK_WORDS];
  for (size_t from = 0; from < size; from += BLOCK_BYTES) {
    const size_t to = smaller(from + BLOCK_BYTES, size);
    pattern_block(words, from, to, iteration, channel);
    memcpy(bytes + from, words, to - from);
  }
}

ptrdiff_t pattern_first_wrong(const unsigned char *bytes, size_t from, size_t to, uint64_t iteration, uint64_t channel) {
  uint64_t words[BLOCK_WORDS];
  for (size_t begin = from - from % 8; begin < to; begin += BLOCK_BYTES) {
    const size_t end = smaller(begin + BLOCK_BYTES, to), first = begin < from ? from : begin;
    const unsigned char *const right = (const unsigned char *)words;
    pattern_block(words, begin, end, iteration, channel);
    if (memcmp(bytes + first, right + (first - begin), end - first) == 0) continue;
    for (size_t at = first; at < end; at++)
      if (bytes[at] != right[at - begin]) return (ptrdiff_t)at;
  }
  return -1;
}

static bool is_dense(const struct shape *shape, size_t *size) {
  MPI_Count type_size = 0, lower = 0, extent = 0;
  MPI(MPI_Type_size_x(shape->type, &type_size));
  MPI(MPI_Type_get_extent_x(shape->type, &lower, &extent));
  *size = (size_t)(type_size * shape->count * shape->num_partitions);
  return shape->type == MPI_BYTE || shape->type == MPI_INT || shape->type == MPI_DOUBLE;
}

/* The pattern lies in memory as MPI itself unpacks it, partition by partition. */
static void lay_out(const struct side *side, unsigned char *memory, uint64_t iteration, uint64_t channel) {
  MPI_Aint lower = 0, extent = 0;
  MPI(MPI_Type_get_extent(side->shape.type, &lower, &extent));
  unsigned char *packed = malloc(side->size + 8);
  pattern_fill(packed, side->size, iteration, channel);
  unsigned char *buffer = memory + (side->buffer - side->memory);
  const int part = (int)(side->size / (size_t)side->shape.num_partitions);
  for (int k = 0; k < side->shape.num_partitions && part > 0; k++) {
    int position = 0;
    MPI(MPI_Unpack(packed + (size_t)k * (size_t)part, part, &position,
                   buffer + (ptrdiff_t)k * (ptrdiff_t)side->shape.count * extent, (int)side->shape.count, side->shape.type,
                   MPI_COMM_SELF));
  }
  free(packed);
}

void side_create(struct side *side, struct shape shape, bool sends) {
  *side = (struct side){.request = MPI_REQUEST_NULL, .shape = shape, .sends = sends};
  ptrdiff_t before = 0;
  if (is_dense(&shape, &side->size)) {
    side->span = side->size;
  } else {
    MPI_Aint lower = 0, extent = 0, true_lower = 0, true_extent = 0;
    MPI(MPI_Type_get_extent(shape.type, &lower, &extent));
    MPI(MPI_Type_get_true_extent(shape.type, &true_lower, &true_extent));
    const ptrdiff_t last = (ptrdiff_t)(shape.count * shape.num_partitions - 1) * extent;
    const ptrdiff_t low = true_lower + (last < 0 ? last : 0), high = true_lower + true_extent + (last > 0 ? last : 0);
    before = low < 0 ? -low : 0;
    side->span = shape.count == 0 ? 0 : (size_t)(before + (high > 0 ? high : 0));
  }
  side->memory = malloc(side->span + 8);
  side->buffer = side->memory + before;
  if (!sends && side->span < (size_t)1 << 30) side->expected = malloc(side->span + 8);
}

void side_send_init(struct side *side, struct shape shape, int peer, int tag, MPI_Comm comm) {
  side_create(side, shape, true);
  MPI(MPI_Psend_init(side->buffer, shape.num_partitions, shape.count, shape.type, peer, tag, comm, MPI_INFO_NULL, &side->request));
}

void side_recv_init(struct side *side, struct shape shape, int peer, int tag, MPI_Comm comm) {
  side_create(side, shape, false);
  MPI(MPI_Precv_init(side->buffer, shape.num_partitions, shape.count, shape.type, peer, tag, comm, MPI_INFO_NULL, &side->request));
}

void side_prepare(struct side *side, uint64_t iteration, uint64_t channel) {
  size_t size = 0;
  if (side->sends && is_dense(&side->shape, &size)) {
    pattern_fill(side->memory, side->span, iteration, channel);
    return;
  }
  memset(side->memory, 0xa5 ^ (int)(iteration & 0x0f), side->span);
  if (side->sends) lay_out(side, side->memory, iteration, channel);
}

bool side_check(struct side *side, uint64_t iteration, uint64_t channel) {
  size_t size = 0;
  ptrdiff_t wrong = -1;
  if (is_dense(&side->shape, &size)) {
    wrong = pattern_first_wrong(side->memory, 0, side->span, iteration, channel);
  } else {
    memset(side->expected, 0xa5 ^ (int)(iteration & 0x0f), side->span);
    lay_out(side, side->expected, iteration, channel);
    const bool is_right = memcmp(side->memory, side->expected, side->span) == 0;
    for (size_t at = 0; !is_right && at < side->span && wrong < 0; at++)
      if (side->memory[at] != side->expected[at]) wrong = (ptrdiff_t)at;
  }
  EXPECT(wrong < 0, "byte %td of %zu is wrong in iteration %d of channel %d", wrong, side->span, (int)iteration, (int)channel);
  return wrong < 0;
}

void side_destroy(struct side *side) {
  if (side->request != MPI_REQUEST_NULL) MPI(MPI_Request_free(&side->request));
  free(side->memory);
  free(side->expected);
  side->memory = side->expected = NULL;
}

void pready_all(MPI_Request request, int num_partitions, enum order order, uint64_t seed) {
  if (order == RANGE) {
    MPI(MPI_Pready_range(0, num_partitions - 1, request));
    return;
  }
  if (order == RANGES) {
    const int middle = num_partitions / 2;
    MPI(MPI_Pready_range(middle, num_partitions - 1, request));
    if (middle > 0) MPI(MPI_Pready_range(0, middle - 1, request));
    return;
  }
  int *partitions = malloc(sizeof(int) * (size_t)num_partitions);
  for (int k = 0; k < num_partitions; k++) partitions[k] = order == REVERSE ? num_partitions - 1 - k : k;
  if (order == RANDOM || order == LIST) random_shuffle(&seed, partitions, num_partitions);
  if (order == LIST) {
    const int first = num_partitions / 3;
    MPI(MPI_Pready_list(first, partitions, request));
    MPI(MPI_Pready_list(num_partitions - first, partitions + first, request));
  } else {
    for (int k = 0; k < num_partitions; k++) MPI(MPI_Pready(partitions[k], request));
  }
  free(partitions);
}

void ring_run(const struct ring *ring) {
  int rank = 0, num_ranks = 1;
  MPI(MPI_Comm_rank(ring->comm, &rank));
  MPI(MPI_Comm_size(ring->comm, &num_ranks));
  const int next = (rank + 1) % num_ranks, before = (rank + num_ranks - 1) % num_ranks;
  struct side sends, receives;
  side_send_init(&sends, ring->sends, next, ring->tag, ring->comm);
  side_recv_init(&receives, ring->receives, before, ring->tag, ring->comm);
  if (ring->free_comm) MPI(MPI_Comm_free(ring->free_comm));
  MPI_Datatype handle = ring->sends.type;
  if (ring->free_type) {
    /* The pattern is still laid out with the type, by a duplicate that MPI does not know as the same. */
    MPI(MPI_Type_dup(handle, &handle));
    sends.shape.type = receives.shape.type = handle;
    MPI(MPI_Type_free(ring->free_type));
  }
  for (int i = 0; i < ring->iterations && !case_failed(); i++) {
    side_prepare(&sends, (uint64_t)i, (uint64_t)rank);
    side_prepare(&receives, (uint64_t)i, (uint64_t)before);
    MPI_Request both[2] = {receives.request, sends.request};
    MPI(MPI_Startall(2, both));
    pready_all(sends.request, ring->sends.num_partitions, ring->order, (uint64_t)i);
    MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    side_check(&receives, (uint64_t)i, (uint64_t)before);
  }
  side_destroy(&sends);
  side_destroy(&receives);
  if (ring->free_type) MPI(MPI_Type_free(&handle));
}

long environment_number(const char *name, long otherwise) {
  const char *text = getenv(name);
  char *end = NULL;
  const long value = text ? strtol(text, &end, 10) : 0;
  return text && *text && !*end ? value : otherwise;
}

enum { NUM_TAKEN = 1023 };
static MPI_Request taken[NUM_TAKEN];
static char taken_byte;

int take_tags(void) {
  int code = MPI_SUCCESS;
  for (int t = 0; environment_number("EARLYBIRD_TESTS_WITHOUT_TAGS", 0) && t < NUM_TAKEN && code == MPI_SUCCESS; t++)
    code = MPI_Psend_init(&taken_byte, 1, 1, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, &taken[t]);
  return code;
}

int free_tags(void) {
  int code = MPI_SUCCESS;
  for (int t = 0; environment_number("EARLYBIRD_TESTS_WITHOUT_TAGS", 0) && t < NUM_TAKEN && code == MPI_SUCCESS; t++)
    code = MPI_Request_free(&taken[t]);
  return code;
}
