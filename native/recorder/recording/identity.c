/* The identity of a communicator hangs on it as an attribute. */
#include "recorder/recording/identity.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct {
  uint64_t identity;
  uint64_t num_created; /* communicators from it */
} attribute;

enum { WORLD = 1, SELF, MAX_PROMISED = 64, MAX_GROUPS = 1024, NUM_HANDLES = 256 };

/* Of the program's communicators, each at its hash: the later one counts. */
static MPI_Comm handles[NUM_HANDLES];
static bool is_handle[NUM_HANDLES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int keyval = MPI_KEYVAL_INVALID;
static MPI_Group world = MPI_GROUP_NULL;

/* By MPI_Comm_idup, until they are used. */
static struct {
  MPI_Comm comm;
  uint64_t identity;
} promised[MAX_PROMISED];
static int num_promised;

/* How often a group has created a communicator with a tag. */
static struct {
  uint64_t group;
  uint64_t num_created;
} groups[MAX_GROUPS];
static int num_groups;

static uint64_t mix(uint64_t one, uint64_t other) {
  uint64_t value = one * 0x9e3779b97f4a7c15u + other;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  value ^= value >> 31;
  return value ? value : 1; /* 0: not known */
}

static int forget(MPI_Comm comm, int key, void *value, void *extra) {
  (void)comm, (void)key, (void)extra;
  free(value);
  return MPI_SUCCESS;
}

static attribute *attribute_of(MPI_Comm comm) {
  void *value = NULL;
  int is_known = 0;
  if (keyval == MPI_KEYVAL_INVALID || PMPI_Comm_get_attr(comm, keyval, &value, &is_known) != MPI_SUCCESS) return NULL;
  return is_known ? value : NULL;
}

static attribute *set(MPI_Comm comm, uint64_t identity) {
  attribute *of = identity && keyval != MPI_KEYVAL_INVALID ? calloc(1, sizeof *of) : NULL;
  if (!of) return NULL;
  of->identity = identity;
  if (PMPI_Comm_set_attr(comm, keyval, of) == MPI_SUCCESS) return of;
  free(of);
  return NULL;
}

void eb_identities_begin(MPI_Group of_world) {
  int rank;
  world = of_world;
  if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL) != MPI_SUCCESS) keyval = MPI_KEYVAL_INVALID;
  (void)set(MPI_COMM_WORLD, mix(WORLD, 0));
  if (PMPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS) (void)set(MPI_COMM_SELF, mix(SELF, (uint64_t)rank));
}

/* The rank in MPI_COMM_WORLD of a rank of the group; negative: it is not there. */
static int world_rank(MPI_Group group, int rank) {
  int found = MPI_UNDEFINED;
  if (PMPI_Group_translate_ranks(group, 1, &rank, world, &found) != MPI_SUCCESS || found == MPI_UNDEFINED) return -1;
  return found;
}

/* 0: it is not known. `is_remote`: of the other group of an inter-communicator. */
static uint64_t first_rank(MPI_Comm comm, bool is_remote) {
  MPI_Group group;
  if ((is_remote ? PMPI_Comm_remote_group(comm, &group) : PMPI_Comm_group(comm, &group)) != MPI_SUCCESS) return 0;
  const int rank = world_rank(group, 0);
  PMPI_Group_free(&group);
  return rank >= 0 ? mix(3, (uint64_t)rank) : 0;
}

/* What tells apart communicators that one call has created. The same seen from both groups of an inter-communicator. */
static uint64_t part_of(MPI_Comm comm) {
  int is_inter = 0;
  if (PMPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS) return 0;
  const uint64_t local = first_rank(comm, false);
  if (!is_inter || !local) return local;
  const uint64_t remote = first_rank(comm, true);
  return remote ? mix(4, local + remote) : 0;
}

static uint64_t take_promised(MPI_Comm comm) {
  uint64_t identity = 0;
  pthread_mutex_lock(&lock);
  for (int p = 0; p < num_promised && !identity; p++) {
    if (promised[p].comm != comm) continue;
    identity = promised[p].identity;
    promised[p] = promised[--num_promised];
  }
  pthread_mutex_unlock(&lock);
  return identity;
}

static unsigned place_of(MPI_Comm comm) { return (unsigned)((uint64_t)(uintptr_t)comm * 0x9e3779b97f4a7c15u >> 56); }

static void remember(MPI_Comm comm) {
  handles[place_of(comm)] = comm;
  __atomic_store_n(&is_handle[place_of(comm)], true, __ATOMIC_RELEASE);
}

bool eb_identity_is_of_program(MPI_Comm comm) {
  return __atomic_load_n(&is_handle[place_of(comm)], __ATOMIC_ACQUIRE) && handles[place_of(comm)] == comm;
}

void eb_identity_forgotten(MPI_Comm comm) {
  if (eb_identity_is_of_program(comm)) __atomic_store_n(&is_handle[place_of(comm)], false, __ATOMIC_RELEASE);
  (void)take_promised(comm);
}

static attribute *known(MPI_Comm comm) {
  attribute *of = attribute_of(comm);
  return of ? of : set(comm, take_promised(comm));
}

/* Of the next communicator that is created from it. */
static uint64_t next_of(MPI_Comm parent) {
  attribute *of = known(parent);
  if (!of) return 0;
  return mix(of->identity, __atomic_add_fetch(&of->num_created, 1, __ATOMIC_RELAXED));
}

void eb_identity_created(MPI_Comm parent, MPI_Comm comm) {
  const uint64_t next = next_of(parent); /* also where this rank gets none */
  if (comm == MPI_COMM_NULL) return;
  eb_identity_forgotten(comm); /* that of a former one, which was freed unseen */
  remember(comm);
  const uint64_t part = next ? part_of(comm) : 0;
  if (part) (void)set(comm, mix(next, part));
}

/* With its only part: all ranks of the parent are in it. */
void eb_identity_promised(MPI_Comm parent, MPI_Comm comm) {
  const uint64_t next = next_of(parent), part = part_of(parent);
  if (!next || !part || comm == MPI_COMM_NULL) return;
  pthread_mutex_lock(&lock);
  int place = 0;
  while (place < num_promised && promised[place].comm != comm) place++;
  if (place < MAX_PROMISED) {
    promised[place].comm = comm;
    promised[place].identity = mix(next, part);
    if (place == num_promised) num_promised++;
  }
  pthread_mutex_unlock(&lock);
}

uint64_t eb_identity_of(MPI_Comm comm) {
  const attribute *of = known(comm);
  return of ? of->identity : 0;
}

/* All ranks of the group, in order; 0: they are not known. */
static uint64_t members_of_group(MPI_Group group) {
  int num = 0;
  uint64_t hash = PMPI_Group_size(group, &num) == MPI_SUCCESS ? mix(5, (uint64_t)num) : 0;
  for (int r = 0; r < num && hash; r++) {
    const int rank = world_rank(group, r);
    hash = rank >= 0 ? mix(hash, (uint64_t)rank) : 0;
  }
  return hash;
}

uint64_t eb_identity_of_object(uint64_t identity, unsigned kind, uint32_t n) {
  return identity ? mix(mix(identity, 8 + kind), n) : 0;
}

uint64_t eb_identity_of_group(MPI_Group group) {
  const uint64_t members = members_of_group(group);
  return members ? mix(7, members) : 0;
}

static uint64_t members_of(MPI_Comm comm, bool is_remote) {
  MPI_Group group;
  if ((is_remote ? PMPI_Comm_remote_group(comm, &group) : PMPI_Comm_group(comm, &group)) != MPI_SUCCESS) return 0;
  const uint64_t members = members_of_group(group);
  PMPI_Group_free(&group);
  return members;
}

/* Creations by one group with one tag have an order, too. 0: too many groups. */
static uint64_t count_created(uint64_t group) {
  uint64_t num = 0;
  pthread_mutex_lock(&lock);
  int place = 0;
  while (place < num_groups && groups[place].group != group) place++;
  if (place < MAX_GROUPS) {
    groups[place].group = group;
    num = ++groups[place].num_created;
    if (place == num_groups) num_groups++;
  }
  pthread_mutex_unlock(&lock);
  return num;
}

void eb_identity_created_alone(MPI_Comm comm, int tag) {
  int is_inter = 0;
  if (comm == MPI_COMM_NULL) return;
  eb_identity_forgotten(comm);
  remember(comm);
  if (PMPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS) return;
  uint64_t members = members_of(comm, false);
  if (is_inter && members) {
    const uint64_t remote = members_of(comm, true);
    members = remote ? mix(6, members + remote) : 0;
  }
  const uint64_t group = members ? mix(members, (uint64_t)tag) : 0, num = group ? count_created(group) : 0;
  if (num) (void)set(comm, mix(group, num));
}
