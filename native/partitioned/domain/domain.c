/* Makes the communicators of the ranks that have the library, and finds out which of these share a node. */
#include "partitioned/domain/domain.h"

#include <stdlib.h>
#include <unistd.h>

#include "partitioned/node/near_ranks.h"
#include "partitioned/node/neighbours.h"
#include "partitioned/node/pool.h"
#include "partitioned/process/world.h"

eb_domain_state eb_domain = {.comm = MPI_COMM_NULL};

static int *ranks_of(const eb_members *members) {
  int *ranks = malloc((size_t)members->num_members * sizeof *ranks), num = 0;
  for (int r = 0; ranks && r < members->num_ranks; r++)
    if (eb_members_has(members, r)) ranks[num++] = r;
  return ranks;
}

/* Collective over the members only. */
static MPI_Comm make_comm(const eb_members *members) {
  enum { TAG = 4502 };
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Group world, group;
  MPI_Errhandler handler;
  int *ranks = ranks_of(members);
  if (!ranks) eb_abort(EB_NO_MEMORY);
  /* That no communicator is left must not end the program, which need not want one. */
  PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, eb_world.errors_return);
  if (PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
    if (PMPI_Group_incl(world, members->num_members, ranks, &group) == MPI_SUCCESS) {
      const int rc = members->num_members == members->num_ranks ? PMPI_Comm_create(MPI_COMM_WORLD, group, &made)
                                                                : PMPI_Comm_create_group(MPI_COMM_WORLD, group, TAG, &made);
      if (rc != MPI_SUCCESS) made = MPI_COMM_NULL;
      PMPI_Group_free(&group);
    }
    PMPI_Group_free(&world);
  }
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  PMPI_Errhandler_free(&handler);
  free(ranks);
  if (made != MPI_COMM_NULL) PMPI_Comm_set_errhandler(made, eb_world.errors_return);
  return made;
}

static bool agree(bool mine) {
  int able = mine, all = 0;
  return PMPI_Allreduce(&able, &all, 1, MPI_INT, MPI_MIN, eb_domain.comm) == MPI_SUCCESS && all;
}

static bool is_any_multiple(void) {
  int multiple = eb_world.multiple, any = 0;
  return PMPI_Allreduce(&multiple, &any, 1, MPI_INT, MPI_MAX, eb_domain.comm) == MPI_SUCCESS && any;
}

/* More lanes, as many as every rank could make. Below MPI_THREAD_MULTIPLE no two threads send at once. */
static void add_lanes(int num) {
  if (num == 1 || !is_any_multiple()) return;
  while (eb_domain.num_lanes < num) {
    MPI_Comm lane = MPI_COMM_NULL;
    const bool made = PMPI_Comm_dup(eb_domain.comm, &lane) == MPI_SUCCESS;
    if (!agree(made)) {
      if (made) PMPI_Comm_free(&lane);
      return;
    }
    PMPI_Comm_set_errhandler(lane, eb_world.errors_return);
    eb_domain.lanes[eb_domain.num_lanes++] = lane;
  }
}

/* The ranks on this node, according to the MPI; these then share memory, unless that is off. */
static void find_near(const eb_config *config) {
  MPI_Comm node;
  MPI_Group own, all;
  int num = 0, first = 0;
  eb_domain.far_rank = eb_domain.size;
  eb_domain.is_near[eb_domain.rank] = true;
  /* Both sides of a transfer must agree on it. */
  if (!agree(PMPI_Comm_split_type(eb_domain.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) == MPI_SUCCESS)) return;
  PMPI_Comm_size(node, &num);
  eb_world.is_crowded = num > sysconf(_SC_NPROCESSORS_ONLN); /* ranks that are bound have fewer processors each */
  int *ranks = malloc(2 * (size_t)num * sizeof *ranks);
  if (!ranks) eb_abort(EB_NO_MEMORY);
  int *const found = ranks + num;
  PMPI_Comm_group(node, &own);
  PMPI_Comm_group(eb_domain.comm, &all);
  for (int r = 0; r < num; r++) ranks[r] = r;
  if (PMPI_Group_translate_ranks(own, num, ranks, all, found) != MPI_SUCCESS) eb_abort("cannot determine the ranks of this node");
  for (int r = 0; r < num; r++) eb_domain.is_near[found[r]] = true;
  PMPI_Group_free(&all);
  PMPI_Group_free(&own);
  if (config->node_path != EB_NODE_OFF) {
    const bool is_direct_asked = config->node_path == EB_NODE_DIRECT;
    if (!eb_near_begin(found, num)) eb_abort(EB_NO_MEMORY);
    eb_pool_begin(node, config->node_bytes, config->pair_bytes, is_direct_asked || config->node_path == EB_NODE_RING);
    eb_neighbours_begin(node, is_direct_asked);
  }
  PMPI_Comm_free(&node);
  free(ranks);
  first = eb_domain.is_near[0] ? eb_domain.size : eb_domain.rank;
  if (PMPI_Allreduce(&first, &eb_domain.far_rank, 1, MPI_INT, MPI_MIN, eb_domain.comm) != MPI_SUCCESS)
    eb_domain.far_rank = eb_domain.size;
}

/* What this rank needs locally. */
static bool allocate(const eb_members *members) {
  int *tag_ub, found = 0;
  eb_domain.is_near = calloc((size_t)eb_domain.size, sizeof *eb_domain.is_near);
  if (members->num_members < members->num_ranks)
    eb_domain.rank_of_world = malloc((size_t)members->num_ranks * sizeof *eb_domain.rank_of_world);
  if (!eb_domain.is_near || (members->num_members < members->num_ranks && !eb_domain.rank_of_world)) return false;
  for (int r = 0, next = 0; eb_domain.rank_of_world && r < members->num_ranks; r++)
    eb_domain.rank_of_world[r] = eb_members_has(members, r) ? next++ : -1;
  if (PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &found) != MPI_SUCCESS || !found) return false;
  eb_domain.tag_ub = *tag_ub;
  return true;
}

bool eb_domain_begin(const eb_members *members, eb_config *config) {
  eb_domain.comm = make_comm(members);
  if (eb_domain.comm == MPI_COMM_NULL) return false;
  eb_domain.lanes[0] = eb_domain.comm;
  eb_domain.num_lanes = 1;
  PMPI_Comm_rank(eb_domain.comm, &eb_domain.rank);
  PMPI_Comm_size(eb_domain.comm, &eb_domain.size);
  if (!agree(allocate(members))) {
    eb_domain_end();
    return false;
  }
  PMPI_Bcast(config, sizeof *config, MPI_BYTE, 0, eb_domain.comm);
  const int64_t pretended = config->tag_bits ? (INT64_C(1) << config->tag_bits) - 1 : eb_domain.tag_ub;
  eb_domain.tags = eb_tags_layout(pretended < eb_domain.tag_ub ? pretended : eb_domain.tag_ub);
  add_lanes(config->num_lanes);
  find_near(config);
  return true;
}

void eb_domain_end(void) {
  eb_neighbours_end();
  eb_pool_end();
  eb_near_end();
  free(eb_domain.is_near);
  free(eb_domain.rank_of_world);
  eb_domain = (eb_domain_state){.comm = MPI_COMM_NULL};
}
