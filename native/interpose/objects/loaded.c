/* Decides by the symbols of loaded objects whether partitioned communication can be ours. */
#include "interpose/objects/loaded.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/earlybird.h"
#include "interpose/objects/fortran_bindings.h"
#include "interpose/objects/identity.h"
#include "interpose/objects/symbols.h"

static const char here; /* its address identifies the object of this library */

/* Memory was short for a list, so decisions based on it are unknown. */
static bool is_undecided;

static eb_objects list_objects(void) {
  eb_objects objects = eb_objects_list();
  if (objects.num == 0) is_undecided = true;
  return objects;
}

static bool has_prefix(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

/* A Fortran name as the standard writes it, without what compilers and bindings put around: MPI_WAIT, mpi_wait__ and
 * mpi_wait_f08ts_ all give mpi_wait. False for names of C, and for those that are too long to be asked for. */
static bool read_fortran_name(const char *name, char plain[32], bool *is_f08) {
  static const char *const suffixes[] = {"_f08ts", "_f08", "_fts"};
  size_t length = strlen(name), num_lower = 0, num_upper = 0;
  if (length >= 32) return false;
  for (size_t c = 0; c <= length; c++) {
    num_lower += islower((unsigned char)name[c]) != 0;
    num_upper += isupper((unsigned char)name[c]) != 0;
    plain[c] = (char)tolower((unsigned char)name[c]);
  }
  if (num_lower > 0 && num_upper > (strstr(name, "_f08") ? 4 : 0)) return false;
  while (length > 0 && plain[length - 1] == '_') plain[--length] = '\0';
  *is_f08 = false;
  for (size_t s = 0; s < sizeof suffixes / sizeof suffixes[0]; s++) {
    const size_t suffix_length = strlen(suffixes[s]);
    if (length <= suffix_length || strcmp(plain + length - suffix_length, suffixes[s]) != 0) continue;
    plain[length - suffix_length] = '\0';
    *is_f08 = true;
    break;
  }
  return true;
}

static bool is_one_of(const char *name, const char *const *names) {
  for (; *names; names++)
    if (strcmp(name, *names) == 0) return true;
  return false;
}

static const eb_object *self_in(const eb_objects *objects) { return eb_objects_at(objects, &here); }

static bool is_c_name(const char *name, void *with) {
  (void)with;
  return has_prefix(name, "MPI_") && islower((unsigned char)name[strlen("MPI_X")]);
}

/* For messages; the loader's copy, which outlives the list of objects. */
static const char *path_of(const eb_object *object) {
  static char program[4096];
  if (!object->is_program) return object->path;
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  return length > 0 ? program : "the program";
}

/* Part of the MPI: its library, its Fortran and C++ bindings, its plug-ins. */
static bool is_of_mpi(const eb_object *object, const char *mpi_path) {
  static const char *const prefixes[] = {"libmpi", "liboshmem", "libmca_", "mca_"};
  if (eb_object_defines(object, "PMPI_Init")) return true;
  const char *slash = strrchr(object->path, '/');
  bool is_named_so = false;
  for (size_t p = 0; slash && p < sizeof prefixes / sizeof prefixes[0]; p++) is_named_so |= has_prefix(slash + 1, prefixes[p]);
  /* Tools are named so, too: libmpiP.so, libmpitrace.so. */
  if (!is_named_so || eb_object_defined(object, is_c_name, NULL)) return false;
  return eb_identity_shares_folder(object->path, mpi_path);
}

static bool is_partitioned_name(const char *name, void *with) {
  static const char *const fortran[] = {"mpi_psend_init", "mpi_precv_init", NULL};
  char plain[32];
  bool is_f08;
  (void)with;
  if (strcmp(name, "MPI_Psend_init") == 0 || strcmp(name, "MPI_Precv_init") == 0) return true;
  if ((name[0] | 0x20) != 'm' || (name[1] | 0x20) != 'p') return false;
  return read_fortran_name(name, plain, &is_f08) && is_one_of(plain, fortran);
}

/* The MPI's bindings and other wrappers refer to these calls in every program. */
static bool uses_partitioned_calls(const eb_object *object, const char *mpi_path) {
  return eb_object_referred(object, is_partitioned_name, NULL) && !eb_object_defines(object, "MPI_Psend_init") &&
         !eb_bindings_are(object) && !is_of_mpi(object, mpi_path);
}

bool eb_loaded_code_is_partitioned(void) {
  eb_objects objects = list_objects();
  const eb_object *self = self_in(&objects);
  const char *mpi_path = eb_identity_mpi_path(&objects);
  bool is_found = false;
  for (size_t o = 0; o < objects.num && !is_found; o++)
    is_found = &objects.at[o] != self && uses_partitioned_calls(&objects.at[o], mpi_path);
  eb_objects_free(&objects);
  return is_found;
}

typedef struct {
  const eb_objects *objects;
  const eb_object *self, *hider;
} search;

/* The recorder of `earlybird record`, which calls the next function of the name in the loader's order. */
static bool passes_on(const eb_object *object) { return eb_object_defines(object, EARLYBIRD_RECORDER_MARK); }

static const eb_object *first_to_define(const eb_objects *objects, const char *name) {
  for (size_t o = 0; o < objects->num; o++)
    if (eb_object_defines(&objects->at[o], name) && !passes_on(&objects->at[o])) return &objects->at[o];
  return NULL;
}

/* The object whose function is called under a name. A program that is not position independent and takes the address of
 * a function answers with an entry of its own that leads to the function; then the order of loading decides. */
static const eb_object *object_called(const eb_objects *objects, const char *name) {
  const eb_object *object = eb_objects_at(objects, dlsym(RTLD_DEFAULT, name));
  return object && (!eb_object_defines(object, name) || passes_on(object)) ? first_to_define(objects, name) : object;
}

static bool is_hidden(const char *name, void *with) {
  search *in = with;
  char plain[32];
  bool is_f08;
  if (!is_c_name(name, NULL) && !(read_fortran_name(name, plain, &is_f08) && has_prefix(plain, "mpi_"))) return false;
  in->hider = object_called(in->objects, name);
  return in->hider && in->hider != in->self;
}

const char *eb_loaded_hidden_call(const char **by) {
  eb_objects objects = list_objects();
  search in = {&objects, self_in(&objects), NULL};
  /* Checks all names that this library defines, so that no list must be maintained. */
  const char *name = in.self ? eb_object_defined(in.self, is_hidden, &in) : NULL;
  if (name) *by = path_of(in.hider);
  eb_objects_free(&objects);
  return name;
}

static bool passes_us_by(const char *name, void *with) {
  static const char *const calls[] = {"mpi_wait",
                                      "mpi_waitall",
                                      "mpi_waitany",
                                      "mpi_waitsome",
                                      "mpi_test",
                                      "mpi_testall",
                                      "mpi_testany",
                                      "mpi_testsome",
                                      "mpi_start",
                                      "mpi_startall",
                                      "mpi_request_free",
                                      "mpi_request_get_status",
                                      "mpi_pready",
                                      "mpi_pready_range",
                                      "mpi_pready_list",
                                      "mpi_parrived",
                                      "mpi_cancel",
                                      "mpi_request_get_status_all",
                                      "mpi_request_get_status_any",
                                      "mpi_request_get_status_some",
                                      NULL};
  const search *in = with;
  const bool is_profiling = (name[0] | 0x20) == 'p';
  char plain[32];
  bool is_f08;
  name += is_profiling;
  if ((name[0] | 0x20) != 'm' || (name[1] | 0x20) != 'p' || (name[2] | 0x20) != 'i') return false;
  if (is_c_name(name, NULL)) {
    if (!is_profiling || strlen(name) >= sizeof plain) return false;
    for (size_t c = 0; c <= strlen(name); c++) plain[c] = (char)tolower((unsigned char)name[c]);
    return is_one_of(plain, calls);
  }
  if (!read_fortran_name(name, plain, &is_f08) || !is_one_of(plain, calls)) return false;
  const eb_object *callee = object_called(in->objects, name - is_profiling);
  if (callee == in->self || eb_bindings_reach_us(callee)) return false;
  /* MPICH's older bindings call the C functions by their own names, and so ours; mpif.h's of Open MPI do not. */
  return is_profiling || is_f08 || eb_identity_fortran_passes_by();
}

/* Wrappers that are in force are found as functions that hide ours; in a library, others are not called. A program with
 * wrappers may as well call what they call. */
static bool only_wraps(const eb_object *object, const char *name) {
  if (!object->is_program) return eb_object_defined(object, is_c_name, NULL) != NULL;
  return (name[0] | 0x20) == 'p' && eb_object_defines(object, name + 1);
}

const char *eb_loaded_bypass(const char **by) {
  eb_objects objects = list_objects();
  const search in = {&objects, self_in(&objects), NULL};
  const char *mpi_path = eb_identity_mpi_path(&objects), *found = NULL;
  for (size_t o = 0; o < objects.num && !found; o++) {
    const eb_object *object = &objects.at[o];
    if (object == in.self || is_of_mpi(object, mpi_path) || eb_bindings_reach_us(object)) continue;
    const char *name = eb_object_referred(object, passes_us_by, (void *)&in);
    if (!name || only_wraps(object, name)) continue;
    found = name;
    *by = path_of(object);
  }
  eb_objects_free(&objects);
  return found;
}

static bool is_off(void) {
  const char *value = getenv("EARLYBIRD_OFF");
  return value && *value && strcmp(value, "0") != 0;
}

/* Set by launchers; the first that is set counts, because mpiexec's daemons may be Slurm's ranks. True if none is set. */
static bool is_first_rank(void) {
  static const char *const variables[] = {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PALS_RANKID", "SLURM_PROCID"};
  for (size_t v = 0; v < sizeof variables / sizeof variables[0]; v++) {
    const char *rank = getenv(variables[v]);
    if (rank && *rank) return strcmp(rank, "0") == 0;
  }
  return true;
}

static void say_hidden(const char *name, const char *by) {
  if (is_first_rank())
    fprintf(stderr,
            "earlybird: %s of %s precedes libearlybird's: the MPI's own partitioned communication is used; to use "
            "libearlybird's, load or link libearlybird first\n",
            name, by);
}

static bool was_asked;

static bool may_serve(void) {
  const char *by, *name;
  if (!eb_loaded_code_is_partitioned()) {
    const char *statistics = getenv(EARLYBIRD_ENV_STATS);
    if (statistics && strcmp(statistics, "1") == 0 && is_first_rank())
      fprintf(stderr, "earlybird: libearlybird is loaded, but no code of this program refers to partitioned communication: the "
                      "library is idle\n");
    return false;
  }
  if ((name = eb_loaded_hidden_call(&by)) != NULL) {
    say_hidden(name, by);
    return false;
  }
  if ((name = eb_loaded_bypass(&by)) != NULL) {
    if (is_first_rank())
      fprintf(stderr,
              "earlybird: %s calls %s, which bypasses libearlybird: the MPI's own partitioned "
              "communication is used\n",
              by, name);
    return false;
  }
  return eb_loaded_mpi_is_supported();
}

eb_service eb_loaded_service(void) {
  was_asked = true;
  if (is_off()) return EB_INACTIVE;
  is_undecided = false;
  const bool may = may_serve();
  return is_undecided ? EB_SERVICE_UNKNOWN : may ? EB_ACTIVE : EB_INACTIVE;
}

void eb_loaded_explain_absence(void) {
  static int is_explained;
  const char *by, *name;
  if (was_asked || is_off() || __atomic_exchange_n(&is_explained, 1, __ATOMIC_RELAXED)) return;
  if ((name = eb_loaded_hidden_call(&by)) != NULL) say_hidden(name, by);
}

bool eb_loaded_mpi_can_be_called(void) {
  eb_objects objects = list_objects();
  const bool can = eb_identity_can_be_called(&objects);
  eb_objects_free(&objects);
  return can;
}

bool eb_loaded_mpi_is_supported(void) {
  eb_objects objects = list_objects();
  const eb_object *self = self_in(&objects);
  const bool is = self && eb_identity_is_complete(self, is_first_rank());
  eb_objects_free(&objects);
  return is;
}
