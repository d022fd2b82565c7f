/* Translates communicators when they are first used.
 *
 * A description hangs on its communicator as an attribute: whatever frees the communicator, a call of the program or of a
 * library that the recorder does not see, the MPI reports it by the attribute's callback. The description is kept, because
 * requests and the file need it; a communicator that is created later with the same members and topology gets it again, so
 * that a program which duplicates and frees in a loop does not fill the memory.
 */
#include "recorder/recording/communicators.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recorder/recording/identity.h"
#include "recorder/recording/table.h"

uint32_t eb_communicators_generation = 1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, reading = PTHREAD_MUTEX_INITIALIZER;
static eb_communicator *first;
static uint32_t num;
static int keyval = MPI_KEYVAL_INVALID;
static MPI_Group world = MPI_GROUP_NULL;

static int forget(MPI_Comm comm, int key, void *value, void *extra) {
  eb_communicator *communicator = value;
  (void)comm, (void)key, (void)extra;
  pthread_mutex_lock(&lock);
  communicator->is_freed = true;
  pthread_mutex_unlock(&lock);
  __atomic_add_fetch(&eb_communicators_generation, 1, __ATOMIC_RELEASE);
  return MPI_SUCCESS;
}

bool eb_communicators_begin(void) {
  if (PMPI_Comm_group(MPI_COMM_WORLD, &world) != MPI_SUCCESS ||
      PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL) != MPI_SUCCESS)
    return false;
  eb_identities_begin(world);
  return true;
}

eb_communicator *eb_communicators_first(void) { return __atomic_load_n(&first, __ATOMIC_ACQUIRE); }

eb_communicator *eb_communicator_of_number(uint32_t number) {
  eb_communicator *each = eb_communicators_first();
  while (each && each->number != number) each = each->next;
  return each;
}

static void find_formula(eb_members *members) {
  members->first = members->num > 0 ? members->listed[0] : 0;
  members->stride = members->num > 1 ? members->listed[1] - members->listed[0] : 1;
  for (int r = 0; r < members->num; r++)
    if (members->listed[r] < 0 || members->listed[r] != members->first + members->stride * r) return;
  free(members->listed);
  members->listed = NULL;
}

static bool read_members(MPI_Group group, eb_members *members) {
  if (PMPI_Group_size(group, &members->num) != MPI_SUCCESS) return false;
  int *ranks = malloc(sizeof *ranks * (size_t)(members->num + 1));
  members->listed = malloc(sizeof *members->listed * (size_t)(members->num + 1));
  if (!ranks || !members->listed) {
    free(ranks);
    return false;
  }
  for (int r = 0; r < members->num; r++) ranks[r] = r;
  const int rc = PMPI_Group_translate_ranks(group, members->num, ranks, world, members->listed);
  free(ranks);
  if (rc != MPI_SUCCESS) return false;
  for (int r = 0; r < members->num; r++)
    if (members->listed[r] == MPI_UNDEFINED) members->listed[r] = EB_PEER_OUTSIDE;
  find_formula(members);
  return true;
}

static void translate(eb_communicator *communicator, int *ranks, int count) {
  for (int r = 0; r < count; r++)
    ranks[r] = ranks[r] == MPI_PROC_NULL ? EB_PEER_NULL : eb_members_world_rank(&communicator->peers, ranks[r]);
}

static bool allocate_neighbours(eb_communicator *communicator) {
  communicator->sources = calloc((size_t)communicator->num_sources + 1, sizeof(int));
  communicator->destinations = calloc((size_t)communicator->num_destinations + 1, sizeof(int));
  return communicator->sources && communicator->destinations;
}

/* Of each dimension first the lower neighbour, then the upper one (MPI 4.1 section 8.6). */
static bool read_cart(MPI_Comm comm, eb_communicator *communicator) {
  if (PMPI_Cartdim_get(comm, &communicator->num_dims) != MPI_SUCCESS) return false;
  const size_t num_dims = (size_t)communicator->num_dims;
  communicator->dims = calloc(num_dims + 1, sizeof(int));
  communicator->periods = calloc(num_dims + 1, sizeof(int));
  int *coordinates = calloc(num_dims + 1, sizeof(int));
  communicator->num_sources = communicator->num_destinations = 2 * communicator->num_dims;
  bool is_read = communicator->dims && communicator->periods && coordinates && allocate_neighbours(communicator) &&
                 PMPI_Cart_get(comm, communicator->num_dims, communicator->dims, communicator->periods, coordinates) == MPI_SUCCESS;
  free(coordinates);
  for (int d = 0; d < communicator->num_dims && is_read; d++) {
    int *at = &communicator->sources[2 * d];
    is_read = PMPI_Cart_shift(comm, d, 1, &at[0], &at[1]) == MPI_SUCCESS;
    memcpy(&communicator->destinations[2 * d], at, 2 * sizeof *at);
  }
  return is_read;
}

static bool read_graph(MPI_Comm comm, eb_communicator *communicator) {
  if (PMPI_Graph_neighbors_count(comm, communicator->rank, &communicator->num_sources) != MPI_SUCCESS) return false;
  communicator->num_destinations = communicator->num_sources;
  if (!allocate_neighbours(communicator)) return false;
  const int rc = PMPI_Graph_neighbors(comm, communicator->rank, communicator->num_sources, communicator->sources);
  memcpy(communicator->destinations, communicator->sources, sizeof(int) * (size_t)communicator->num_sources);
  return rc == MPI_SUCCESS;
}

static bool read_dist_graph(MPI_Comm comm, eb_communicator *communicator) {
  int is_weighted;
  if (PMPI_Dist_graph_neighbors_count(comm, &communicator->num_sources, &communicator->num_destinations, &is_weighted) !=
          MPI_SUCCESS ||
      !allocate_neighbours(communicator))
    return false;
  /* The weights are read too: MPI_UNWEIGHTED, in MPICH, is data of the MPI, which may be loaded after us. */
  int *source_weights = calloc((size_t)communicator->num_sources + 1, sizeof(int));
  int *weights = calloc((size_t)communicator->num_destinations + 1, sizeof(int));
  const bool is_read = source_weights && weights &&
                       PMPI_Dist_graph_neighbors(comm, communicator->num_sources, communicator->sources, source_weights,
                                                 communicator->num_destinations, communicator->destinations,
                                                 weights) == MPI_SUCCESS;
  free(source_weights);
  free(weights);
  return is_read;
}

static bool read_topology(MPI_Comm comm, eb_communicator *communicator) {
  int topology = MPI_UNDEFINED;
  bool is_read = true;
  communicator->topology = "none";
  if (communicator->is_inter) return true;
  if (PMPI_Topo_test(comm, &topology) != MPI_SUCCESS) return false;
  if (topology == MPI_CART) {
    communicator->topology = "cart";
    is_read = read_cart(comm, communicator);
  } else if (topology == MPI_GRAPH) {
    communicator->topology = "graph";
    is_read = read_graph(comm, communicator);
  } else if (topology == MPI_DIST_GRAPH) {
    communicator->topology = "dist_graph";
    is_read = read_dist_graph(comm, communicator);
  }
  if (!is_read) return false;
  translate(communicator, communicator->sources, communicator->num_sources);
  translate(communicator, communicator->destinations, communicator->num_destinations);
  return true;
}

static bool read_groups(MPI_Comm comm, eb_communicator *communicator) {
  MPI_Group group;
  int is_inter;
  if (PMPI_Comm_rank(comm, &communicator->rank) != MPI_SUCCESS || PMPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS ||
      PMPI_Comm_group(comm, &group) != MPI_SUCCESS)
    return false;
  bool is_read = read_members(group, &communicator->local);
  PMPI_Group_free(&group);
  communicator->is_inter = is_inter;
  communicator->peers = communicator->local;
  if (!is_read || !is_inter) return is_read;
  communicator->peers = (eb_members){0};
  if (PMPI_Comm_remote_group(comm, &group) != MPI_SUCCESS) return false;
  is_read = read_members(group, &communicator->peers);
  PMPI_Group_free(&group);
  return is_read;
}

static void drop(eb_communicator *communicator) {
  if (communicator->is_inter) free(communicator->peers.listed);
  free(communicator->local.listed);
  free(communicator->dims);
  free(communicator->periods);
  free(communicator->sources);
  free(communicator->destinations);
  free(communicator);
}

static eb_communicator *read_communicator(MPI_Comm comm) {
  int length;
  eb_communicator *communicator = calloc(1, sizeof *communicator);
  if (!communicator) return NULL;
  communicator->name = communicator->first_name;
  communicator->identity = eb_identity_of(comm);
  if (read_groups(comm, communicator) && read_topology(comm, communicator) &&
      PMPI_Comm_get_name(comm, communicator->first_name, &length) == MPI_SUCCESS)
    return communicator;
  drop(communicator);
  return NULL;
}

static bool are_equal(const int *one, const int *other, int count) {
  return count == 0 || (one && other ? memcmp(one, other, sizeof *one * (size_t)count) == 0 : one == other);
}

static bool have_same_members(const eb_members *one, const eb_members *other) {
  return one->num == other->num && one->first == other->first && one->stride == other->stride &&
         are_equal(one->listed, other->listed, one->num);
}

static bool are_alike(const eb_communicator *one, const eb_communicator *other) {
  return one->rank == other->rank && one->is_inter == other->is_inter && have_same_members(&one->local, &other->local) &&
         have_same_members(&one->peers, &other->peers) && strcmp(one->topology, other->topology) == 0 &&
         strcmp(one->first_name, other->first_name) == 0 && one->num_dims == other->num_dims &&
         one->num_sources == other->num_sources && one->num_destinations == other->num_destinations &&
         are_equal(one->dims, other->dims, one->num_dims) && are_equal(one->periods, other->periods, one->num_dims) &&
         are_equal(one->sources, other->sources, one->num_sources) &&
         are_equal(one->destinations, other->destinations, one->num_destinations);
}

/* A freed one that is alike, or the new one, which gets its number. Which communicators a description stands for depends on what
 * this rank has used of them, so one that stands for several has no identity. */
/* What other processes see of it. Its number is there last. */
static void show(eb_communicator *communicator) {
  eb_awaited_communicator *const shown = communicator->awaited = eb_awaited_communicator_add();
  const eb_members *const members = &communicator->local;
  shown->identity = communicator->identity;
  shown->size = (uint32_t)members->num;
  shown->rank = communicator->rank;
  shown->is_inter = communicator->is_inter;
  shown->first = members->first;
  shown->stride = members->stride;
  if (members->listed) {
    int32_t *const listed = eb_awaited_members_add(shown->size);
    shown->is_unlisted = listed == NULL;
    if (listed) {
      memcpy(listed, members->listed, sizeof *listed * shown->size);
      shown->members_at = (uint32_t)(listed - eb_page_current->members);
      shown->num_listed = shown->size;
    }
  }
  snprintf(shown->name, sizeof shown->name, "%.*s", EB_AWAITED_NAME - 1, communicator->first_name);
  __atomic_store_n(&shown->number, communicator->number, __ATOMIC_RELEASE);
}

static eb_communicator *enlist(eb_communicator *communicator) {
  for (eb_communicator *former = first; former; former = former->next) {
    if (!former->is_freed || !are_alike(former, communicator)) continue;
    former->is_freed = false;
    former->identity = former->awaited->identity = 0;
    __atomic_store_n(&former->is_written, false, __ATOMIC_RELEASE);
    drop(communicator);
    return former;
  }
  communicator->number = ++num;
  show(communicator);
  communicator->next = first;
  __atomic_store_n(&first, communicator, __ATOMIC_RELEASE);
  return communicator;
}

static eb_communicator *describe(MPI_Comm comm) {
  eb_communicator *communicator = read_communicator(comm);
  if (!communicator) return NULL;
  pthread_mutex_lock(&lock);
  communicator = enlist(communicator);
  pthread_mutex_unlock(&lock);
  return PMPI_Comm_set_attr(comm, keyval, communicator) == MPI_SUCCESS ? communicator : NULL;
}

eb_communicator *eb_communicator_of(MPI_Comm comm) {
  void *value = NULL;
  int is_known = 0;
  if (PMPI_Comm_get_attr(comm, keyval, &value, &is_known) != MPI_SUCCESS) return NULL;
  if (is_known) return value;
  /* Threads may use a new communicator for the first time together. */
  pthread_mutex_lock(&reading);
  if (PMPI_Comm_get_attr(comm, keyval, &value, &is_known) != MPI_SUCCESS || !is_known) value = describe(comm);
  pthread_mutex_unlock(&reading);
  return value;
}

eb_awaited_communicator *eb_communicator_object(eb_communicator *communicator, eb_object_kind kind) {
  static const char *const names[EB_NUM_OBJECTS] = {"window", "persistent collective", "file"};
  pthread_mutex_lock(&lock);
  const uint32_t number = ++communicator->num_objects[kind];
  eb_awaited_communicator *const object = eb_awaited_object_add(kind);
  if (object) {
    static uint32_t num_shown;
    eb_awaited_communicator shown = *communicator->awaited;
    shown.identity = eb_identity_of_object(communicator->identity, kind, number);
    shown.num_entered = 0;
    shown.number = 0; /* it is there last */
    snprintf(shown.name, sizeof shown.name, "%s %u of %.*s", names[kind], number, EB_AWAITED_NAME - 40,
             communicator->name[0] ? communicator->name : "a communicator");
    *object = shown;
    __atomic_store_n(&object->number, EB_AWAITED_OBJECT(kind) | ++num_shown, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&lock);
  return object;
}

void eb_communicator_object_free(eb_awaited_communicator *object, eb_object_kind kind) {
  if (!object) return;
  pthread_mutex_lock(&lock);
  eb_awaited_object_free(object, kind);
  pthread_mutex_unlock(&lock);
}

int *eb_group_ranks(MPI_Group group, int *count) {
  eb_members members = {0};
  if (!read_members(group, &members)) {
    free(members.listed);
    return NULL;
  }
  *count = members.num;
  if (members.listed) return members.listed;
  int *const ranks = malloc(sizeof *ranks * (size_t)(members.num + 1));
  for (int r = 0; ranks && r < members.num; r++) ranks[r] = eb_members_world_rank(&members, r);
  return ranks;
}

void eb_communicator_named(MPI_Comm comm, const char *name) {
  void *value = NULL;
  int is_known = 0;
  if (PMPI_Comm_get_attr(comm, keyval, &value, &is_known) != MPI_SUCCESS || !is_known) return; /* its first use reads it */
  eb_communicator *communicator = value;
  if (strcmp(__atomic_load_n(&communicator->name, __ATOMIC_ACQUIRE), name) == 0) return;
  char *copy = strndup(name, MPI_MAX_OBJECT_NAME - 1);
  if (!copy) return;
  __atomic_store_n(&communicator->name, copy, __ATOMIC_RELEASE);
  snprintf(communicator->awaited->name, sizeof communicator->awaited->name, "%.*s", EB_AWAITED_NAME - 1, copy);
  __atomic_store_n(&communicator->is_written, false, __ATOMIC_RELEASE);
}

/* Members alone matter to what is no communicator itself, such as a window. */
static eb_communicator *enlist_group(eb_communicator *communicator) {
  for (eb_communicator *known = first; known; known = known->next) {
    if (known->is_inter || !have_same_members(&known->local, &communicator->local)) continue;
    drop(communicator);
    return known;
  }
  return enlist(communicator);
}

eb_communicator *eb_communicator_of_group(MPI_Group group) {
  eb_communicator *communicator = calloc(1, sizeof *communicator);
  if (!communicator) return NULL;
  communicator->topology = "none";
  communicator->name = communicator->first_name;
  if (PMPI_Group_rank(group, &communicator->rank) != MPI_SUCCESS || !read_members(group, &communicator->local)) {
    drop(communicator);
    return NULL;
  }
  communicator->peers = communicator->local;
  communicator->identity = eb_identity_of_group(group);
  pthread_mutex_lock(&lock);
  communicator = enlist_group(communicator);
  pthread_mutex_unlock(&lock);
  return communicator;
}
