/* Leads the C calls of Fortran's bindings to ours, so that they never pass a partitioned request by.
 *
 * A Fortran call ends in a C call: MPI_Wait in some bindings, which the loader takes from us, PMPI_Wait in others, which
 * it takes from the MPI. Of the latter kind are `mpi_f08` of MPICH and Intel MPI and all three bindings of Open MPI. The
 * MPI sees an inactive request there, and the program goes on before its data has come.
 *
 * Shared objects call each other through addresses that the loader has filled in. In objects that implement Fortran's
 * calls, those of PMPI_ functions that we have under their MPI_ names are replaced by ours. All that differs from MPI to
 * MPI and from compiler to compiler stays with the bindings: logicals, statuses, MPI_STATUS_IGNORE, descriptors,
 * optional arguments, 8-byte integers (Intel's ILP64 layer, which Fortran functions of ours would hide). Ours reach the
 * MPI by their own addresses, which are not replaced, so nothing goes round in a circle.
 */
#include "interpose/fortran/bindings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "interpose/fortran/objects.h"

/* _DYNAMIC is that of the object it is asked in. */
static bool is_ours(const eb_object *object) { return object->dynamic == _DYNAMIC; }

/* A Fortran call under the name that some compiler gives it. A library with the MPI itself in it calls PMPI_ functions
 * for its own ends. */
static bool are_bindings(const eb_object *object) {
  static const char *const calls[] = {"mpi_wait_", "mpi_wait_f08_", "mpi_wait", "mpi_wait__", "MPI_WAIT"};
  bool has_any = false;
  for (size_t c = 0; !has_any && c < sizeof calls / sizeof calls[0]; c++)
    has_any = eb_object_function(object, calls[c]) != NULL;
  return has_any && !is_ours(object) && !eb_object_function(object, "PMPI_Init");
}

bool eb_bindings_are(const struct dl_phdr_info *info) {
  eb_object object;
  return eb_object_read(info, &object) && are_bindings(&object);
}

bool eb_bindings_name_is_partitioned(const char *name) {
  return strncasecmp(name, "MPI_Psend_init", 14) == 0 || strncasecmp(name, "MPI_Precv_init", 14) == 0;
}

/* Set before the program begins, by the constructor alone. */
static eb_object ours;

static bool replace(const eb_object *object, const void **address, const void *by) {
  if (*address == by) return true;
  const uintptr_t at = (uintptr_t)address;
  const bool is_read_only = at >= object->read_only_begin && at < object->read_only_end;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void *const its_page = (void *)(at & ~(page - 1));
  if (is_read_only && mprotect(its_page, page, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(address, by, __ATOMIC_RELEASE);
  if (is_read_only) (void)mprotect(its_page, page, PROT_READ);
  return true;
}

static void redirect(const eb_object *bindings) {
  for (int kind = 0; kind < 2; kind++) {
    for (size_t r = 0; r < bindings->num_relocations[kind]; r++) {
      const ElfW(Rela) *relocation = &bindings->relocations[kind][r];
      const char *name = eb_object_relocated_name(bindings, relocation);
      const void *by = name && strncmp(name, "PMPI_", 5) == 0 ? eb_object_function(&ours, name + 1) : NULL;
      if (!by || replace(bindings, (const void **)(bindings->base + relocation->r_offset), by)) continue;
      fprintf(stderr, "earlybird: Fortran's calls cannot be taken over (%s): partitioned requests must not be completed there\n",
              strerror(errno));
      return;
    }
  }
}

static int find_ours(struct dl_phdr_info *info, size_t size, void *found) {
  (void)size;
  return *(bool *)found = eb_object_read(info, &ours) && is_ours(&ours);
}

/* How many objects had been loaded when they were last looked at, and are now. */
typedef struct {
  unsigned long long before, now;
} num_loaded;

static int look_into(struct dl_phdr_info *info, size_t size, void *of) {
  num_loaded *num = of;
  eb_object object;
  (void)size;
  num->now = info->dlpi_adds;
  if (num->now == num->before) return 1;
  if (eb_object_read(info, &object) && are_bindings(&object)) redirect(&object);
  return 0;
}

void eb_bindings_redirect(void) {
  static unsigned long long num_seen;
  num_loaded num = {.before = __atomic_load_n(&num_seen, __ATOMIC_ACQUIRE)};
  dl_iterate_phdr(look_into, &num);
  __atomic_store_n(&num_seen, num.now, __ATOMIC_RELEASE);
}

/* The first call of a Fortran program, MPI_INIT, may be one that has to be replaced. Whatever the program needs has its
 * addresses by now. */
__attribute__((constructor)) static void redirect_at_start(void) {
  bool is_found = false;
  dl_iterate_phdr(find_ours, &is_found);
  if (is_found) eb_bindings_redirect();
  else ours = (eb_object){0};
}
