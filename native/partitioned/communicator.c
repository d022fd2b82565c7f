/* Shadows, views, the counting of requests, and errors through the user's handler. */
#include "partitioned/communicator.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/matching.h"
#include "partitioned/world.h"

static eb_shadow *shadows;

eb_shadow *eb_shadows(void) { return shadows; }

/* Frees a shadow that nothing refers to, if no message for it is under way. */
static void free_if_idle(eb_shadow *shadow) {
  eb_matching_collect(shadow);
  if (shadow->num_owed > 0) return;
  for (eb_shadow **at = &shadows; *at; at = &(*at)->next) {
    if (*at == shadow) {
      *at = shadow->next;
      break;
    }
  }
  eb_matching_forget(shadow);
  eb_ids_end(&shadow->ids);
  free(shadow->is_near);
  /* Freeing is collective by the letter; in MPICH, Open MPI and Intel MPI it only drops a reference, so ranks whose
   * last request goes earlier or later than the others' do not wait for one another. */
  for (int lane = 0; lane < shadow->num_lanes; lane++) PMPI_Comm_free(&shadow->lanes[lane]);
  free(shadow);
}

void eb_shadow_release(eb_shadow *shadow) {
  if (--shadow->references == 0) free_if_idle(shadow);
}

void eb_shadows_sweep(void) {
  eb_lock();
  for (eb_shadow *shadow = shadows; shadow;) {
    eb_shadow *const next = shadow->next;
    if (shadow->references == 0) free_if_idle(shadow);
    shadow = next;
  }
  eb_unlock();
}

void eb_view_retain(eb_view *view) {
  eb_lock();
  view->references++;
  eb_unlock();
}

void eb_view_release(eb_view *view) {
  eb_lock();
  if (--view->references == 0) {
    eb_shadow_release(view->shadow);
    if (view->errhandler != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&view->errhandler);
    free(view->sends.slots);
    free(view->receives.slots);
    free(view);
  }
  eb_unlock();
}

/* MPI calls this when the user's communicator goes; requests may hold the view longer. */
static int communicator_freed(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)keyval, (void)extra;
  eb_view *view = value;
  eb_lock();
  if (PMPI_Comm_get_errhandler(comm, &view->errhandler) != MPI_SUCCESS) view->errhandler = MPI_ERRHANDLER_NULL;
  view->user = MPI_COMM_NULL;
  /* Their senders keep their shadows until they have been told. At the end of the program nobody waits any more. */
  if (--view->shadow->num_users == 0 && eb_world.on) eb_matching_flush_releases(view->shadow);
  eb_view_release(view);
  eb_unlock();
  return MPI_SUCCESS;
}

int eb_communicator_begin(void) {
  return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, communicator_freed, &eb_world.keyval, NULL);
}

void eb_communicator_end(void) {
  /* Shadows are left to MPI_Finalize: what a program never received may still be in them, and MPICH ends a program
   * that frees a communicator with unmatched messages. */
  const MPI_Comm predefined[] = {MPI_COMM_SELF, MPI_COMM_WORLD};
  for (int c = 0; c < 2; c++) {
    eb_view *view = eb_communicator_view(predefined[c]);
    if (!view) continue;
    view->shadow->num_owed++; /* never freed */
    PMPI_Comm_delete_attr(predefined[c], eb_world.keyval);
  }
}

static void attach(eb_shadow *shadow, MPI_Comm user, uint64_t context) {
  eb_view *view = calloc(1, sizeof *view);
  if (!view) return;
  view->shadow = shadow;
  view->user = user;
  view->errhandler = MPI_ERRHANDLER_NULL;
  view->references = 1;
  view->context = context;
  view->size = shadow->size;
  if (PMPI_Comm_rank(shadow->comm, &view->rank) != MPI_SUCCESS || PMPI_Comm_set_attr(user, eb_world.keyval, view) != MPI_SUCCESS) {
    free(view);
    return;
  }
  eb_lock();
  shadow->references++;
  shadow->num_users++;
  eb_unlock();
}

static MPI_Comm make_shadow_comm(MPI_Comm user) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Group group;
  MPI_Errhandler handler;
  /* A failure here (no context ids left) must not be the user's error: their communicator was made. */
  if (PMPI_Comm_get_errhandler(user, &handler) != MPI_SUCCESS) return made;
  PMPI_Comm_set_errhandler(user, MPI_ERRORS_RETURN);
  if (PMPI_Comm_group(user, &group) == MPI_SUCCESS) {
    /* Not MPI_Comm_dup: that would run the copy callbacks of the user's attributes. */
    if (PMPI_Comm_create(user, group, &made) != MPI_SUCCESS) made = MPI_COMM_NULL;
    PMPI_Group_free(&group);
  }
  PMPI_Comm_set_errhandler(user, handler);
  PMPI_Errhandler_free(&handler);
  if (made != MPI_COMM_NULL) PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return made;
}

/* More lanes, as many as every rank could make. */
static void add_lanes(eb_shadow *shadow, MPI_Comm user) {
  while (shadow->num_lanes < eb_world.settings.num_lanes) {
    MPI_Comm lane = make_shadow_comm(user);
    int made = lane != MPI_COMM_NULL, by_all = 0;
    PMPI_Allreduce(&made, &by_all, 1, MPI_INT, MPI_MIN, shadow->comm);
    if (!by_all) {
      if (made) PMPI_Comm_free(&lane);
      return;
    }
    shadow->lanes[shadow->num_lanes++] = lane;
  }
}

/* The ranks in our MPI_COMM_WORLD of all its ranks, NULL where some are of no or another one: those (spawned or
 * connected) have not agreed to anything with us. All ranks of a communicator answer alike: whoever is of another world
 * has us for strangers. */
static int *ranks_in_world(MPI_Comm user, int size) {
  MPI_Group group, world;
  int same, num_found = 0;
  int *ranks = malloc(2 * (size_t)size * sizeof *ranks), *const found = ranks + size;
  if (!ranks) return NULL;
  for (int r = 0; r < size; r++) ranks[r] = r;
  /* Most are like it, and a translation takes Open MPI the square of the ranks. */
  if (PMPI_Comm_compare(user, MPI_COMM_WORLD, &same) == MPI_SUCCESS && (same == MPI_IDENT || same == MPI_CONGRUENT)) return ranks;
  if (PMPI_Comm_group(user, &group) == MPI_SUCCESS) {
    if (PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
      if (PMPI_Group_translate_ranks(group, size, ranks, world, found) == MPI_SUCCESS)
        for (int r = 0; r < size; r++) num_found += found[r] != MPI_UNDEFINED;
      PMPI_Group_free(&world);
    }
    PMPI_Group_free(&group);
  }
  if (num_found == size) {
    memcpy(ranks, found, (size_t)size * sizeof *ranks);
    return ranks;
  }
  free(ranks);
  return NULL;
}

static bool *find_near(MPI_Comm user, int size) {
  int *ranks = ranks_in_world(user, size);
  bool *is_near = ranks ? malloc((size_t)size * sizeof *is_near) : NULL;
  for (int r = 0; is_near && r < size; r++)
    is_near[r] = eb_world.node_of_rank[ranks[r]] == eb_world.node_of_rank[eb_world.rank];
  free(ranks);
  return is_near;
}

void eb_communicator_adopt(MPI_Comm user) {
  int is_inter, found, size, *tag_ub;
  eb_shadows_sweep();
  if (user == MPI_COMM_NULL || PMPI_Comm_test_inter(user, &is_inter) != MPI_SUCCESS || is_inter ||
      PMPI_Comm_size(user, &size) != MPI_SUCCESS)
    return;
  bool *is_near = find_near(user, size);
  if (!is_near) return;
  MPI_Comm comm = make_shadow_comm(user);
  if (comm == MPI_COMM_NULL) {
    free(is_near);
    return;
  }
  eb_shadow *shadow = calloc(1, sizeof *shadow);
  if (!shadow || PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &found) != MPI_SUCCESS || !found) {
    free(shadow);
    free(is_near);
    PMPI_Comm_free(&comm);
    return;
  }
  const int64_t pretended = eb_world.settings.tag_bits ? (INT64_C(1) << eb_world.settings.tag_bits) - 1 : *tag_ub;
  shadow->comm = shadow->lanes[0] = comm;
  shadow->num_lanes = 1;
  add_lanes(shadow, user);
  shadow->size = size;
  shadow->is_near = is_near;
  shadow->tag_ub = *tag_ub;
  shadow->tags = eb_tags_layout(pretended < *tag_ub ? pretended : *tag_ub);
  shadow->references = 1; /* ours, until the view has it */
  shadow->last_setup = &shadow->setups;
  shadow->last_expecting = &shadow->expecting;
  eb_ids_begin(&shadow->ids, eb_tags_num_ids(&shadow->tags));
  eb_lock();
  shadow->next = shadows;
  shadows = shadow;
  eb_unlock();
  /* Not under our lock: an MPI may hold one of its own over attributes while it calls communicator_freed. */
  attach(shadow, user, 0);
  eb_lock();
  eb_shadow_release(shadow);
  eb_unlock();
}

void eb_communicator_adopt_idup(MPI_Comm parent, MPI_Comm user) {
  eb_view *view = eb_communicator_view(parent);
  if (!view || user == MPI_COMM_NULL) return;
  eb_lock();
  /* The path of idups from the shadow's own communicator, 16 bits a step. A longer or wider family goes without. */
  const uint64_t child = ++view->num_idups;
  eb_unlock();
  if (child < 1 << 16 && view->context < UINT64_C(1) << 48) attach(view->shadow, user, view->context << 16 | child);
}

eb_view *eb_communicator_view(MPI_Comm user) {
  eb_view *view;
  int found = 0;
  if (user == MPI_COMM_NULL || PMPI_Comm_get_attr(user, eb_world.keyval, &view, &found) != MPI_SUCCESS) return NULL;
  return found ? view : NULL;
}

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

int64_t eb_view_next_order(eb_order_map *map, int peer, int tag) {
  const uint64_t key = ((uint64_t)(uint32_t)peer << 32 | (uint32_t)tag) + 1;
  if ((!map->slots || 2 * map->num_used > map->mask) && grow_orders(map) != 0) return -1;
  eb_order *slot = slot_of(map, key);
  if (slot->key == 0) {
    slot->key = key;
    map->num_used++;
  }
  return (int64_t)slot->num++;
}

/* Calls the handler of a communicator that the user has freed. MPI calls handlers through communicators only, and none
 * that is left can lend itself: on the shadow, calls of our own that fail in other threads meanwhile would reach the
 * user's handler, and two handlers at once would be mixed up unless a lock of ours were held while the program's code
 * runs, which may call MPI or wait for another thread. So it gets one for itself, of this process, which no other
 * process has to help make; false where there is none left. */
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
    handler = view->errhandler; /* lives as long as the view, which the failing request holds */
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
  /* One code per sentence for ever: MPIs have few of them. */
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
