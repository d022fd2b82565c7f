/* Names communicators, counts their requests, and raises errors through the user's handler. */
#include "partitioned/domain/communicator.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "partitioned/domain/domain.h"
#include "partitioned/process/world.h"

static eb_order *slot_of(const eb_order_map *map, uint64_t key) {
  uint64_t at = key * UINT64_C(0x9E3779B97F4A7C15) >> 20;
  while (map->slots[at & map->mask].key != 0 && map->slots[at & map->mask].key != key) at++;
  return &map->slots[at & map->mask];
}

static int grow_orders(eb_order_map *map) {
  eb_order_map larger = {.mask = map->slots ? 2 * map->mask + 1 : 15};
  larger.slots = calloc(larger.mask + 1, sizeof *larger.slots);
  if (!larger.slots) return -1;
  for (uint64_t s = 0; map->slots && s <= map->mask; s++) {
    if (map->slots[s].key == 0) continue;
    *slot_of(&larger, map->slots[s].key) = map->slots[s];
    larger.num_used++;
  }
  free(map->slots);
  *map = larger;
  return 0;
}

/* How often this was called for the key (never 0) before; -1 when memory is short. */
static int64_t count_on(eb_order_map *map, uint64_t key) {
  if ((!map->slots || 2 * map->num_used > map->mask) && grow_orders(map) != 0) return -1;
  eb_order *slot = slot_of(map, key);
  if (slot->key == 0) {
    slot->key = key;
    map->num_used++;
  }
  return (int64_t)slot->num++;
}

static uint64_t order_key(int peer, int tag) { return ((uint64_t)(uint32_t)peer << 32 | (uint32_t)tag) + 1; }

int64_t eb_view_next_order(eb_order_map *map, int peer, int tag) { return count_on(map, order_key(peer, tag)); }

void eb_view_return_order(eb_order_map *map, int peer, int tag) { slot_of(map, order_key(peer, tag))->num--; }

/* What communicators of sessions carry in place of a view. */
static eb_view of_session;

static eb_view *attribute_of(MPI_Comm user) {
  eb_view *view;
  int found = 0;
  if (user == MPI_COMM_NULL || PMPI_Comm_get_attr(user, eb_world.keyval, &view, &found) != MPI_SUCCESS) return NULL;
  return found ? view : NULL;
}

eb_view *eb_communicator_view(MPI_Comm user) {
  eb_view *view = attribute_of(user);
  return view == &of_session ? NULL : view;
}

void eb_view_retain(eb_view *view) {
  eb_lock();
  view->references++;
  eb_unlock();
}

void eb_view_release(eb_view *view) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  eb_lock();
  const bool is_last = --view->references == 0;
  if (is_last) handler = view->errhandler;
  eb_unlock();
  if (!is_last) return;
  if (handler != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&handler);
  free(view->sends.slots);
  free(view->receives.slots);
  free(view->groups.slots);
  free(view);
}

/* MPI calls this when the user's communicator goes; requests may hold the view longer. */
static int communicator_freed(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)keyval, (void)extra;
  eb_view *view = value;
  MPI_Errhandler handler;
  if (view == &of_session) return MPI_SUCCESS;
  if (PMPI_Comm_get_errhandler(comm, &handler) != MPI_SUCCESS) handler = MPI_ERRHANDLER_NULL;
  eb_lock();
  view->errhandler = handler;
  view->user = MPI_COMM_NULL;
  eb_unlock();
  eb_view_release(view);
  return MPI_SUCCESS;
}

int eb_communicator_begin(void) {
  return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, communicator_freed, &eb_world.keyval, NULL);
}

void eb_communicator_end(void) {
  /* That of MPI_COMM_SELF was deleted just before; MPICH's list of its attributes must not be looked at any more. */
  if (eb_communicator_view(MPI_COMM_WORLD)) PMPI_Comm_delete_attr(MPI_COMM_WORLD, eb_world.keyval);
}

/* `like` has the same ranks; NULL: the communicator is asked for them. */
static int attach(MPI_Comm user, uint64_t identity, int number, const eb_view *like) {
  int is_inter = 0, rc = MPI_SUCCESS;
  eb_view *view = calloc(1, sizeof *view);
  if (!view) return MPI_ERR_NO_MEM;
  *view = (eb_view){.user = user, .errhandler = MPI_ERRHANDLER_NULL, .references = 1, .identity = identity, .number = number};
  if (like) {
    view->rank = like->rank;
    view->num_peers = like->num_peers;
  } else {
    rc = PMPI_Comm_test_inter(user, &is_inter);
    if (rc == MPI_SUCCESS) rc = PMPI_Comm_rank(user, &view->rank);
    if (rc == MPI_SUCCESS) rc = is_inter ? PMPI_Comm_remote_size(user, &view->num_peers) : PMPI_Comm_size(user, &view->num_peers);
  }
  if (rc == MPI_SUCCESS) rc = PMPI_Comm_set_attr(user, eb_world.keyval, view);
  if (rc != MPI_SUCCESS) free(view);
  return rc;
}

int eb_communicator_adopt_predefined(void) {
  const int rc = attach(MPI_COMM_WORLD, EB_IDENTITY_WORLD, 0, NULL);
  return rc == MPI_SUCCESS ? attach(MPI_COMM_SELF, EB_IDENTITY_WORLD + 1, -1, NULL) : rc;
}

/* A hash of two numbers (splitmix64's finaliser). */
static uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t mixed = a + (b + 1) * UINT64_C(0x9E3779B97F4A7C15);
  mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
  return mixed ^ mixed >> 31;
}

/* Without a view, for which memory may be short, the communicator would remain unknown on this rank only. The other ranks
 * cannot be notified; that ends the program, like any transfer that waits for a rank that has failed. */
static void name(MPI_Comm made, uint64_t identity, int number, const eb_view *like) {
  if (attach(made, identity, number, like) != MPI_SUCCESS) eb_abort(EB_NO_MEMORY);
}

void eb_communicator_made_of_session(MPI_Comm made) {
  if (made != MPI_COMM_NULL && PMPI_Comm_set_attr(made, eb_world.keyval, &of_session) != MPI_SUCCESS) eb_abort(EB_NO_MEMORY);
}

/* Does the parent, and so its derived communicators, belong to a session? All ranks of the parent agree. */
static bool is_of_session(MPI_Comm parent, MPI_Comm made) {
  if (attribute_of(parent) != &of_session) return false;
  eb_communicator_made_of_session(made);
  return true;
}

/* How many were named so before, under eb_lock. Like name(), it has no way back: the other ranks have counted. */
static uint64_t count_named(eb_order_map *map, uint64_t key) {
  const int64_t before = count_on(map, key | 1);
  if (before < 0) eb_abort(EB_NO_MEMORY);
  return (uint64_t)before;
}

/* From the ranks in MPI_COMM_WORLD, in their order; 0 where some are of another one: spawned or connected. */
static uint64_t hash_group(MPI_Group group) {
  int size = 0;
  uint64_t hash = 0;
  if (PMPI_Group_size(group, &size) != MPI_SUCCESS) return 0;
  int *ranks = malloc(2 * (size_t)size * sizeof *ranks + 1);
  if (!ranks) eb_abort(EB_NO_MEMORY); /* without an identity on this rank only, its transfers would hang */
  int *const found = ranks + size;
  for (int r = 0; r < size; r++) ranks[r] = r;
  if (PMPI_Group_translate_ranks(group, size, ranks, eb_world.group, found) == MPI_SUCCESS) {
    hash = 1;
    for (int r = 0; r < size && hash; r++) hash = found[r] == MPI_UNDEFINED ? 0 : mix(hash, (uint64_t)found[r]);
  }
  free(ranks);
  return hash;
}

/* Communicators that were named by their members so far, for those of the same members. */
static eb_order_map named;

/* A communicator derived from an unknown one, such as one that joins two worlds, may contain only ranks of this world. All of
 * them create it, so they count equally. */
static void name_by_members(MPI_Comm made) {
  int is_inter = 0;
  MPI_Group group;
  if (made == MPI_COMM_NULL || PMPI_Comm_test_inter(made, &is_inter) != MPI_SUCCESS || is_inter) return;
  if (PMPI_Comm_group(made, &group) != MPI_SUCCESS) return;
  const uint64_t hash = hash_group(group);
  PMPI_Group_free(&group);
  if (hash == 0) return;
  eb_lock();
  const uint64_t before = count_named(&named, hash);
  eb_unlock();
  name(made, mix(hash, before), -1, NULL);
}

/* The identity and number of the next communicator derived from the parent. */
static uint64_t next_child(eb_view *parent, int *number) {
  eb_lock();
  const uint64_t child = ++parent->num_children;
  eb_unlock();
  *number = parent->identity == EB_IDENTITY_WORLD && child <= INT_MAX ? (int)child : -1;
  return mix(parent->identity, child);
}

void eb_communicator_made(MPI_Comm parent, MPI_Comm made) {
  if (is_of_session(parent, made)) return;
  eb_view *view = eb_communicator_view(parent);
  if (!view) {
    name_by_members(made);
    return;
  }
  int number;
  const uint64_t identity = next_child(view, &number);
  /* Ranks that belong to none of the new communicators count it as well. */
  if (made != MPI_COMM_NULL) name(made, identity, number, NULL);
}

void eb_communicator_duplicated(MPI_Comm parent, MPI_Comm made) {
  if (is_of_session(parent, made)) return;
  eb_view *view = eb_communicator_view(parent);
  int number;
  if (!view || made == MPI_COMM_NULL) return;
  const uint64_t identity = next_child(view, &number);
  name(made, identity, number, view);
}

void eb_communicator_made_of_group(MPI_Comm parent, MPI_Group group, int tag, MPI_Comm made) {
  if (is_of_session(parent, made)) return;
  eb_view *view = eb_communicator_view(parent);
  const uint64_t hash = view && made != MPI_COMM_NULL ? hash_group(group) : 0;
  if (hash == 0) return;
  const uint64_t key = mix(hash, (uint64_t)tag);
  eb_lock();
  const uint64_t before = count_named(&view->groups, key);
  eb_unlock();
  name(made, mix(mix(view->identity, key), before), -1, NULL);
}

void eb_communicator_joined(MPI_Comm local_comm, int tag, MPI_Comm made) {
  MPI_Group local, remote;
  if (is_of_session(local_comm, made)) return;
  if (made == MPI_COMM_NULL || PMPI_Comm_group(made, &local) != MPI_SUCCESS) return;
  if (PMPI_Comm_remote_group(made, &remote) != MPI_SUCCESS) {
    PMPI_Group_free(&local);
    return;
  }
  const uint64_t ours = hash_group(local), theirs = hash_group(remote);
  PMPI_Group_free(&local);
  PMPI_Group_free(&remote);
  if (ours == 0 || theirs == 0) return;
  /* The same from either side. */
  const uint64_t key = mix(ours < theirs ? mix(ours, theirs) : mix(theirs, ours), (uint64_t)tag);
  eb_lock();
  const uint64_t before = count_named(&named, key);
  eb_unlock();
  name(made, mix(key, before), -1, NULL);
}

int eb_view_domain_rank(const eb_view *view, int peer) {
  MPI_Group group;
  int is_inter, in_world = MPI_UNDEFINED;
  if (view->identity == EB_IDENTITY_WORLD) return eb_domain_rank(peer);
  if (PMPI_Comm_test_inter(view->user, &is_inter) != MPI_SUCCESS) return -1;
  if ((is_inter ? PMPI_Comm_remote_group(view->user, &group) : PMPI_Comm_group(view->user, &group)) != MPI_SUCCESS) return -1;
  if (PMPI_Group_translate_ranks(group, 1, &peer, eb_world.group, &in_world) != MPI_SUCCESS) in_world = MPI_UNDEFINED;
  PMPI_Group_free(&group);
  return in_world == MPI_UNDEFINED ? -1 : eb_domain_rank(in_world);
}

/* Calls the handler of a communicator that the user has freed. MPI calls handlers only through communicators, and no existing
 * one is suitable: on the domain's communicator, failing calls of the library in other threads would reach the user's
 * handler. Two concurrent handlers would be mixed up unless the library held a lock while the program's code runs, which may
 * call MPI or wait for another thread. Therefore the handler gets a new communicator of this process, which is created
 * locally; false if none is left. */
static bool call_kept_handler(MPI_Errhandler handler, int code) {
  /* Makes the calls on eb_world.self one by one. Not eb_lock: an MPI may wait in them for another thread that makes a
   * communicator. */
  static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
  MPI_Comm lent = MPI_COMM_NULL;
  MPI_Group group;
  if (PMPI_Comm_group(eb_world.self, &group) != MPI_SUCCESS) return false;
  pthread_mutex_lock(&making);
  if (PMPI_Comm_create(eb_world.self, group, &lent) != MPI_SUCCESS) lent = MPI_COMM_NULL;
  pthread_mutex_unlock(&making);
  PMPI_Group_free(&group);
  if (lent == MPI_COMM_NULL) return false;
  const bool is_set = PMPI_Comm_set_errhandler(lent, handler) == MPI_SUCCESS;
  if (is_set) PMPI_Comm_call_errhandler(lent, code);
  PMPI_Comm_free(&lent);
  return is_set;
}

int eb_raise_code(const eb_view *view, int code) {
  MPI_Comm user = MPI_COMM_NULL;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (view) {
    eb_lock();
    user = view->user;
    handler = view->errhandler; /* valid as long as the view, which the failing request holds */
    eb_unlock();
  }
  if (user != MPI_COMM_NULL) {
    PMPI_Comm_call_errhandler(user, code);
  } else if (handler == MPI_ERRHANDLER_NULL || !call_kept_handler(handler, code)) {
    /* MPI 4.1 section 9.3: errors of no communicator are MPI_COMM_SELF's. */
    PMPI_Comm_call_errhandler(MPI_COMM_SELF, code);
  }
  return code;
}

int eb_raise(const eb_view *view, int error_class, const char *sentence) {
  /* One permanent code per message: MPIs have few of them. */
  static struct {
    const char *sentence;
    int code;
  } known[64];
  int code = error_class;
  eb_lock();
  for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
    if (known[k].sentence == sentence) {
      code = known[k].code;
      break;
    }
    if (!known[k].sentence) {
      int made;
      if (PMPI_Add_error_code(error_class, &made) == MPI_SUCCESS && PMPI_Add_error_string(made, sentence) == MPI_SUCCESS) {
        known[k].sentence = sentence;
        known[k].code = code = made;
      }
      break;
    }
  }
  eb_unlock();
  return eb_raise_code(view, code);
}
