/* Leads the C calls of Fortran's bindings to ours, so that they pass no partitioned request by, and are recorded.
 *
 * A Fortran call ends in a C call: MPI_Wait in some bindings, which the loader takes from us, PMPI_Wait in others, which
 * it takes from the MPI. Of the latter kind are `mpi_f08` of MPICH and Intel MPI and all three bindings of Open MPI. To the
 * MPI the request is an inactive one, and the program would go on before its data has come.
 *
 * Shared objects call one another through addresses that the loader has filled in. In objects that implement Fortran's
 * calls, those of the PMPI_ functions that we have under their MPI_ names are replaced by ours. What differs from MPI to
 * MPI and from compiler to compiler stays with the bindings: logicals, statuses, MPI_STATUS_IGNORE, descriptors, optional
 * arguments, and 8-byte integers, for which Intel MPI has a layer of Fortran functions that any of ours would hide. We
 * reach the MPI by addresses of our own, which are not replaced: nothing goes round in a circle. With a recorder before
 * libearlybird, calls that both have go to the recorder, which calls libearlybird.
 */
#include "interpose/objects/fortran_bindings.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* By a call under the names that compilers give it. A library that has the MPI itself in it calls PMPI_ functions for its
 * own ends, too. */
bool eb_bindings_are(const eb_object *object) {
  static const char *const calls[] = {"mpi_wait_", "mpi_wait_f08_", "mpi_wait", "mpi_wait__", "MPI_WAIT"};
  for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++)
    if (eb_object_defines(object, calls[c])) return !eb_object_defines(object, "PMPI_Init");
  return false;
}

/* The relocations that are filled with the address of a symbol. Other machines are not served. */
#if defined(__x86_64__)
#define IS_ADDRESS(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#elif defined(__aarch64__)
#define IS_ADDRESS(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#elif defined(__powerpc64__) && defined(_CALL_ELF) && _CALL_ELF == 2
#define IS_ADDRESS(type) ((type) == R_PPC64_JMP_SLOT || (type) == R_PPC64_GLOB_DAT || (type) == R_PPC64_ADDR64)
#elif defined(__riscv) && __riscv_xlen == 64
#define IS_ADDRESS(type) ((type) == R_RISCV_JUMP_SLOT || (type) == R_RISCV_64)
#endif

#if defined(IS_ADDRESS)

static bool is_of_us; /* its address identifies the object of this library */
static bool has_failed;
static unsigned long long num_seen; /* objects loaded when all were looked at last; 0: memory was short for that */

bool eb_bindings_reach_us(const eb_object *object) { return object && num_seen > 0 && !has_failed && eb_bindings_are(object); }

/* The loader makes such pages read-only when it has filled them in. */
static bool is_read_only(const eb_object *object, uintptr_t page, size_t page_bytes) {
  for (int s = 0; s < object->num_segments; s++) {
    const ElfW(Phdr) *segment = &object->segments[s];
    const uintptr_t begin = (object->base + segment->p_vaddr) & ~(page_bytes - 1);
    const uintptr_t end = (object->base + segment->p_vaddr + segment->p_memsz) & ~(page_bytes - 1);
    if (segment->p_type == PT_GNU_RELRO && page >= begin && page < end) return true;
  }
  return false;
}

static bool replace(const eb_object *object, uintptr_t at, uintptr_t by) {
  const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  const uintptr_t page = at & ~(page_bytes - 1);
  uintptr_t *const address = (uintptr_t *)at;
  if (*address == by) return true;
  const bool was_read_only = is_read_only(object, page, page_bytes);
  if (was_read_only && mprotect((void *)page, page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(address, by, __ATOMIC_RELEASE);
  if (was_read_only) (void)mprotect((void *)page, page_bytes, PROT_READ);
  return true;
}

/* Those that calls go to: the first of them that has the call. */
typedef struct {
  const eb_object *at[2];
} receivers;

static receivers find_receivers(const eb_objects *objects) {
  receivers found = {{NULL, eb_objects_at(objects, &is_of_us)}};
  for (size_t o = 0; o < objects->num && !found.at[0]; o++)
    if (eb_object_defines(&objects->at[o], EARLYBIRD_RECORDER_MARK)) found.at[0] = &objects->at[o];
  return found;
}

static bool is_receiver(const receivers *to, const eb_object *object) { return object == to->at[0] || object == to->at[1]; }

/* Where a relocation of the bindings is about a PMPI_ function that we have: its address in us, else 0. */
static uintptr_t ours_for(const eb_object *bindings, const receivers *to, const ElfW(Rela) *relocation) {
  const ElfW(Sym) *symbol = &bindings->symbols[ELF64_R_SYM(relocation->r_info)];
  const char *name = bindings->names + symbol->st_name;
  if (!IS_ADDRESS(ELF64_R_TYPE(relocation->r_info)) || relocation->r_addend != 0 || strncmp(name, "PMPI_", 5) != 0) return 0;
  for (size_t r = 0; r < sizeof to->at / sizeof to->at[0]; r++)
    if (to->at[r] && eb_object_defines(to->at[r], name + 1)) return to->at[r]->base + eb_object_find(to->at[r], name + 1)->st_value;
  return 0;
}

static bool redirect(const eb_object *bindings, const receivers *to) {
  for (size_t t = 0; t < sizeof bindings->relocations / sizeof bindings->relocations[0]; t++) {
    const eb_relocations *table = &bindings->relocations[t];
    const ElfW(Rela) *relocations = table->at;
    if (!relocations || table->entry_bytes != sizeof *relocations) continue;
    for (size_t r = 0; r < table->size_bytes / sizeof *relocations; r++) {
      const uintptr_t by = ours_for(bindings, to, &relocations[r]);
      if (by && !replace(bindings, bindings->base + relocations[r].r_offset, by)) return false;
    }
  }
  return true;
}

static int read_num_loaded(struct dl_phdr_info *info, size_t size, void *num) {
  (void)size;
  *(unsigned long long *)num = info->dlpi_adds;
  return 1;
}

void eb_bindings_redirect(void) {
  unsigned long long num_loaded = 0;
  dl_iterate_phdr(read_num_loaded, &num_loaded);
  if (__atomic_load_n(&num_seen, __ATOMIC_ACQUIRE) == num_loaded) return;
  eb_objects objects = eb_objects_list();
  if (objects.num == 0) return; /* no memory now: the next call tries again */
  const receivers to = find_receivers(&objects);
  for (size_t o = 0; o < objects.num; o++) {
    if (is_receiver(&to, &objects.at[o]) || !eb_bindings_are(&objects.at[o]) || redirect(&objects.at[o], &to)) continue;
    has_failed = true;
    fprintf(stderr, "earlybird: cannot intercept the calls of %s: %s\n", objects.at[o].path, strerror(errno));
  }
  eb_objects_free(&objects);
  __atomic_store_n(&num_seen, num_loaded, __ATOMIC_RELEASE);
}

#else

void eb_bindings_redirect(void) {}

bool eb_bindings_reach_us(const eb_object *object) {
  (void)object;
  return false;
}

#endif
