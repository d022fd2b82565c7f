/* Derived and gapped datatypes on either side: every byte in its place, and none in the gaps. */
#include <stdlib.h>
#include <string.h>

#include "case.h"

enum { ELEMENTS = 24 }; /* doubles in one element of every type of the list */

/* Types of ELEMENTS doubles each: dense, gapped, with borders moved, permuted. */
static int make_types(MPI_Datatype *types) {
  int n = 0;
  MPI(MPI_Type_contiguous(ELEMENTS, MPI_DOUBLE, &types[n++]));
  MPI(MPI_Type_vector(ELEMENTS, 1, 3, MPI_DOUBLE, &types[n++]));
  MPI(MPI_Type_vector(4, ELEMENTS / 4, 10, MPI_DOUBLE, &types[n++]));
  int lengths[4] = {1, 11, 4, 8}, places[4] = {40, 4, 0, 20};
  MPI(MPI_Type_indexed(4, lengths, places, MPI_DOUBLE, &types[n++]));
  MPI_Datatype dense;
  MPI(MPI_Type_contiguous(ELEMENTS, MPI_DOUBLE, &dense));
  MPI(MPI_Type_create_resized(dense, -16, ELEMENTS * 8 + 40, &types[n++])); /* a hole at both ends */
  MPI(MPI_Type_free(&dense));
  int outer[3] = {8, 9, 5}, inner[3] = {2, 4, 3}, from[3] = {3, 2, 1};
  MPI(MPI_Type_create_subarray(3, outer, inner, from, MPI_ORDER_C, MPI_DOUBLE, &types[n++]));
  int blocks[3] = {8, 64, 8};
  MPI_Aint at[3] = {-8, 72, 160}; /* a negative lower bound */
  MPI_Datatype parts[3] = {MPI_DOUBLE, MPI_CHAR, MPI_DOUBLE};
  MPI(MPI_Type_create_struct(3, blocks, at, parts, &types[n++]));
  for (int t = 0; t < n; t++) MPI(MPI_Type_commit(&types[t]));
  return n;
}

static void free_types(MPI_Datatype *types, int n) {
  for (int t = 0; t < n; t++) MPI(MPI_Type_free(&types[t]));
}

static void equal_types(const struct context *context) {
  MPI_Datatype types[16];
  const int n = make_types(types);
  static const struct {
    int senders, count_sent, receivers, count_received;
  } counts[] = {{6, 1, 6, 1}, {6, 10, 4, 15}, {1, 24, 8, 3}, {6, 100, 5, 120}};
  for (int t = 0; t < n; t++)
    for (int c = 0; c < 4; c++)
      ring_run(&(struct ring){.comm = context->world,
                              .sends = {counts[c].senders, counts[c].count_sent, types[t]},
                              .receives = {counts[c].receivers, counts[c].count_received, types[t]},
                              .tag = 1,
                              .iterations = 4,
                              .order = RANDOM});
  free_types(types, n);
}

/* The struct of the list is of other basic types, so it meets itself only. */
static void different_types(const struct context *context) {
  MPI_Datatype types[16];
  const int n = make_types(types) - 1;
  for (int s = 0; s < n; s++)
    for (int r = 0; r < n; r++) {
      ring_run(&(struct ring){.comm = context->world,
                              .sends = {8, 5, types[s]},
                              .receives = {5, 8, types[r]},
                              .tag = 2,
                              .iterations = 4,
                              .order = RANDOM});
    }
  for (int t = 0; t < n; t++) {
    ring_run(&(struct ring){.comm = context->world,
                            .sends = {3, 4, types[t]},
                            .receives = {1, 12 * ELEMENTS, MPI_DOUBLE},
                            .tag = 2,
                            .iterations = 4,
                            .order = RANDOM});
    ring_run(&(struct ring){.comm = context->world,
                            .sends = {12 * ELEMENTS, 1, MPI_DOUBLE},
                            .receives = {2, 6, types[t]},
                            .tag = 2,
                            .iterations = 4,
                            .order = RANDOM});
  }
  free_types(types, n + 1);
}

static void large_gapped(const struct context *context) {
  MPI_Datatype types[16];
  const int n = make_types(types);
  for (int t = 0; t < n; t++)
    ring_run(&(struct ring){.comm = context->world,
                            .sends = {4, 1000, types[t]},
                            .receives = {4, 1000, types[t]},
                            .tag = 3,
                            .iterations = 3,
                            .order = RANDOM});
  free_types(types, n);
}

/* Partition k is column k of a matrix: the extent is that of one element, the partitions interleave. */
static void columns(const struct context *context) {
  enum { ROWS = 50, COLUMNS = 16 };
  MPI_Datatype whole, column;
  MPI(MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &whole));
  MPI(MPI_Type_create_resized(whole, 0, sizeof(int), &column));
  MPI(MPI_Type_commit(&column));
  MPI(MPI_Type_free(&whole));
  const struct shape shape = {COLUMNS, 1, column}, halves = {COLUMNS / 2, 2, column};
  const struct shape rows = {ROWS, COLUMNS, MPI_INT};
  const struct ring rings[] = {
      {.comm = context->world, .sends = shape, .receives = shape, .tag = 4, .iterations = 5, .order = RANDOM},
      {.comm = context->world, .sends = shape, .receives = rows, .tag = 4, .iterations = 5, .order = RANDOM},
      {.comm = context->world, .sends = rows, .receives = halves, .tag = 4, .iterations = 5, .order = RANDOM},
  };
  for (int r = 0; r < 3; r++) ring_run(&rings[r]);
  MPI(MPI_Type_free(&column));
}

static void freed_type(const struct context *context) {
  MPI_Datatype types[16];
  const int n = make_types(types);
  for (int t = 0; t < n; t++) {
    ring_run(&(struct ring){.comm = context->world,
                            .sends = {4, 10, types[t]},
                            .receives = {4, 10, types[t]},
                            .tag = 5,
                            .iterations = 6,
                            .order = RANDOM,
                            .free_type = &types[t]});
  }
}

/* A type of absolute addresses with MPI_BOTTOM. */
static void absolute_addresses(const struct context *context) {
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  unsigned char *sent = malloc(4096), *received = malloc(4096), right[96];
  MPI_Aint at[2] = {0, 0};
  MPI_Datatype types[2];
  MPI_Request both[2];
  int lengths[2] = {32, 64};
  for (int side = 0; side < 2; side++) {
    unsigned char *memory = side ? received : sent;
    MPI(MPI_Get_address(memory + 1000, &at[0]));
    MPI(MPI_Get_address(memory + 8, &at[1]));
    MPI(MPI_Type_create_hindexed(2, lengths, at, MPI_BYTE, &types[side]));
    MPI(MPI_Type_commit(&types[side]));
  }
  MPI(MPI_Psend_init(MPI_BOTTOM, 1, 1, types[0], next, 6, context->world, MPI_INFO_NULL, &both[0]));
  MPI(MPI_Precv_init(MPI_BOTTOM, 1, 1, types[1], before, 6, context->world, MPI_INFO_NULL, &both[1]));
  for (uint64_t i = 0; i < 4; i++) {
    pattern_fill(right, sizeof right, i, (uint64_t)context->rank);
    memcpy(sent + 1000, right, 32);
    memcpy(sent + 8, right + 32, 64);
    memset(received, 0, 4096);
    MPI(MPI_Startall(2, both));
    MPI(MPI_Pready(0, both[0]));
    MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    pattern_fill(right, sizeof right, i, (uint64_t)before);
    EXPECT(memcmp(received + 1000, right, 32) == 0 && memcmp(received + 8, right + 32, 64) == 0,
           "the data of iteration %d is wrong", (int)i);
  }
  for (int side = 0; side < 2; side++) {
    MPI(MPI_Request_free(&both[side]));
    MPI(MPI_Type_free(&types[side]));
  }
  free(sent);
  free(received);
}

static void empty_type(const struct context *context) {
  MPI_Datatype nothing;
  MPI(MPI_Type_contiguous(0, MPI_INT, &nothing));
  MPI(MPI_Type_commit(&nothing));
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  MPI_Request both[2];
  MPI(MPI_Psend_init(NULL, 3, 7, nothing, next, 7, context->world, MPI_INFO_NULL, &both[0]));
  MPI(MPI_Precv_init(NULL, 2, 5, nothing, before, 7, context->world, MPI_INFO_NULL, &both[1]));
  for (int i = 0; i < 3; i++) {
    MPI(MPI_Startall(2, both));
    pready_all(both[0], 3, FORWARD, 0);
    MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  }
  MPI(MPI_Request_free(&both[0]));
  MPI(MPI_Request_free(&both[1]));
  MPI(MPI_Type_free(&nothing));
}

/* Nothing travels to or from MPI_PROC_NULL: the buffer must stay as it was, also where a type has gaps. */
static void proc_null(const struct context *context) {
  MPI_Datatype column;
  MPI(MPI_Type_vector(4, 1, 2, MPI_INT, &column));
  MPI(MPI_Type_commit(&column));
  int border[32];
  for (int i = 0; i < 32; i++) border[i] = 7000 + i;
  MPI_Request both[2];
  MPI(MPI_Precv_init(border, 2, 1, column, MPI_PROC_NULL, 3, context->world, MPI_INFO_NULL, &both[0]));
  MPI(MPI_Psend_init(border, 2, 1, column, MPI_PROC_NULL, 3, context->world, MPI_INFO_NULL, &both[1]));
  for (int start = 0; start < 3; start++) {
    int flag = 0;
    MPI(MPI_Startall(2, both));
    pready_all(both[1], 2, FORWARD, 0);
    if (start == 1) MPI(MPI_Parrived(both[0], 1, &flag));
    EXPECT(start != 1 || flag, "a partition from MPI_PROC_NULL has not arrived");
    MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  }
  for (int i = 0; i < 32; i++) EXPECT(border[i] == 7000 + i, "element %d became %d", i, border[i]);
  for (int side = 0; side < 2; side++) MPI(MPI_Request_free(&both[side]));
  MPI(MPI_Type_free(&column));
}

/* The status of a request says that its operation is complete, so the data must be there, before any MPI_Wait. */
static void status_first(const struct context *context) {
  MPI_Datatype column;
  MPI(MPI_Type_vector(4, 1, 2, MPI_INT, &column));
  MPI(MPI_Type_commit(&column));
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  int sent[16], received[16];
  MPI_Request both[2];
  MPI(MPI_Psend_init(sent, 1, 1, column, next, 4, context->world, MPI_INFO_NULL, &both[0]));
  MPI(MPI_Precv_init(received, 1, 1, column, before, 4, context->world, MPI_INFO_NULL, &both[1]));
  for (int start = 0; start < 3; start++) {
    for (int i = 0; i < 16; i++) {
      sent[i] = 100 * start + 10 * context->rank + i;
      received[i] = -1;
    }
    MPI(MPI_Startall(2, both));
    MPI(MPI_Pready(0, both[0]));
    for (int flag = 0; !flag;) MPI(MPI_Request_get_status(both[1], &flag, MPI_STATUS_IGNORE));
    for (int i = 0; i < 7; i++)
      EXPECT(received[i] == (i % 2 ? -1 : 100 * start + 10 * before + i), "element %d is %d", i, received[i]);
    MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  }
  for (int side = 0; side < 2; side++) MPI(MPI_Request_free(&both[side]));
  MPI(MPI_Type_free(&column));
}

/* Of a type made with large counts the older call for a type's constructor makes an error. */
static void large_count_type(const struct context *context) {
#if MPI_AT_LEAST(4, 0)
  MPI_Datatype pairs, copy;
  MPI(MPI_Type_contiguous_c(2, MPI_INT, &pairs));
  MPI(MPI_Type_dup(pairs, &copy));
  MPI(MPI_Type_commit(&copy));
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  int sent[4] = {1, 2, 3, 4}, received[4] = {0};
  MPI_Request both[2];
  MPI(MPI_Psend_init(sent, 2, 1, copy, next, 5, context->world, MPI_INFO_NULL, &both[0]));
  MPI(MPI_Precv_init(received, 2, 1, copy, before, 5, context->world, MPI_INFO_NULL, &both[1]));
  MPI(MPI_Startall(2, both));
  pready_all(both[0], 2, FORWARD, 0);
  MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  EXPECT(memcmp(sent, received, sizeof sent) == 0, "the data is wrong");
  for (int side = 0; side < 2; side++) MPI(MPI_Request_free(&both[side]));
  MPI(MPI_Type_free(&pairs));
  MPI(MPI_Type_free(&copy));
#else
  (void)context;
  case_skip("this MPI says that it is older than MPI 4.0");
#endif
}

const struct test_case type_cases[] = {
    {"a_gapped_buffer_of_proc_null_stays_as_it_was", proc_null, 0},
    {"data_is_there_when_get_status_says_so", status_first, 0},
    {"a_type_made_with_large_counts_delivers", large_count_type, 0},
    {"derived_types_deliver_every_byte_and_leave_gaps_alone", equal_types, 0},
    {"different_types_on_the_two_sides_deliver_every_byte", different_types, 30},
    {"large_gapped_types_deliver_every_byte", large_gapped, 0},
    {"interleaved_partitions_deliver_every_column", columns, 0},
    {"a_type_freed_after_init_still_describes_the_data", freed_type, 0},
    {"a_type_of_absolute_addresses_delivers", absolute_addresses, 0},
    {"a_type_without_data_completes", empty_type, 0},
    {0},
};
