/* Looks at the symbols of loaded objects and asks the MPI for its name. */
#include "partitioned/loaded.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/fortran/bindings.h"

/* What the version string of the MPI that we are compiled for begins with. Intel MPI defines MPICH's names too. */
#if defined(I_MPI_VERSION)
#define OUR_MPI "Intel(R) MPI Library"
#elif defined(OPEN_MPI)
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define OUR_MPI "Open MPI v" TEXT(OMPI_MAJOR_VERSION) "."
#elif defined(MPICH_VERSION)
#define OUR_MPI "MPICH"
#else
#define OUR_MPI ""
#endif

/* Looks for symbols of all loaded objects: those that are referred to, or that are defined. */
typedef struct {
  bool (*is_wanted)(const char *name);
  bool defined;
  bool is_found;
  char path[4096]; /* of the object it was found in */
} search;

/* How many symbols an object has is told by its hash table alone. */
static uint32_t count_by_gnu_hash(const uint32_t *table) {
  const uint32_t num_buckets = table[0], first = table[1], num_bloom = table[2];
  const uint32_t *buckets = table + 4 + num_bloom * (sizeof(ElfW(Addr)) / 4), *chains = buckets + num_buckets;
  uint32_t last = 0;
  for (uint32_t b = 0; b < num_buckets; b++)
    if (buckets[b] > last) last = buckets[b];
  if (last < first) return first;
  while (!(chains[last - first] & 1)) last++;
  return last + 1;
}

static int look_into(struct dl_phdr_info *info, size_t size, void *of) {
  search *in = of;
  (void)size;
  const ElfW(Dyn) *dynamic = NULL;
  for (int h = 0; h < info->dlpi_phnum; h++)
    if (info->dlpi_phdr[h].p_type == PT_DYNAMIC) dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[h].p_vaddr);
  const ElfW(Sym) *symbols = NULL;
  const char *names = NULL;
  uint32_t num = 0;
  for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
    /* glibc has relocated these addresses, but for the vDSO's, which is below its base then. */
    if (dynamic->d_un.d_ptr < info->dlpi_addr) continue;
    const void *at = (const void *)dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SYMTAB) symbols = at;
    if (dynamic->d_tag == DT_STRTAB) names = at;
    if (dynamic->d_tag == DT_HASH) num = ((const uint32_t *)at)[1];
    if (dynamic->d_tag == DT_GNU_HASH && num == 0) num = count_by_gnu_hash(at);
  }
  if (!symbols || !names) return 0;
  if (!in->defined && eb_bindings_are(info)) return 0;
  for (uint32_t s = 0; s < num; s++) {
    const bool is_defined = symbols[s].st_shndx != SHN_UNDEF;
    if (is_defined != in->defined || !symbols[s].st_name || !in->is_wanted(names + symbols[s].st_name)) continue;
    in->is_found = true;
    snprintf(in->path, sizeof in->path, "%s", info->dlpi_name);
    return 1;
  }
  return 0;
}

bool eb_loaded_code_is_partitioned(void) {
  search in = {.is_wanted = eb_bindings_name_is_partitioned};
  dl_iterate_phdr(look_into, &in);
  return in.is_found;
}

static bool is_init(const char *name) { return strcmp(name, "PMPI_Init") == 0; }

/* Python's mpi4py, say, loads its MPI for itself alone, after us: made visible to us, it is found when each of its
 * functions is first called, but for a process that binds all of them when it starts. */
static void *find_late_mpi(void) {
  search in = {.is_wanted = is_init, .defined = true};
  dl_iterate_phdr(look_into, &in);
  return in.is_found ? dlopen(in.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL) : NULL;
}

/* Was the MPI there when we were loaded? Its functions were looked up then, and Open MPI's handles, which are data. No
 * function that is called may be compared with NULL for that: its address would be bound for ever to what it was then. */
static bool is_late;

static void tell(const char *what, const char *remedy) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "another MPI";
  int length;
  int (*ask)(char *, int *) = (int (*)(char *, int *))dlsym(RTLD_DEFAULT, "PMPI_Get_library_version");
  if (ask) (void)ask(version, &length);
  version[strcspn(version, "\n,")] = '\0';
  fprintf(stderr, "earlybird: this process runs %.60s, and libearlybird was built for %s: %s; %s\n", version, OUR_MPI, what,
          remedy);
}

bool eb_loaded_mpi_can_be_called(void) {
  is_late = dlsym(RTLD_DEFAULT, "PMPI_Init") == NULL;
  if (is_late && !find_late_mpi()) {
    fprintf(stderr, "earlybird: the MPI of this process cannot be found; run it with `earlybird exec --no-interpose`\n");
    return false;
  }
  const char *bind_now = getenv("LD_BIND_NOW");
  if (is_late && bind_now && *bind_now) {
    fprintf(stderr, "earlybird: LD_BIND_NOW is set, and this program loads its MPI while it runs: unset it, or run the program with "
                    "`earlybird exec --no-interpose`\n");
    return false;
  }
#if defined(OPEN_MPI)
  const bool is_of_our_kind = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != NULL;
#else
  const bool is_of_our_kind = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") == NULL;
#endif
  if (!is_of_our_kind)
    tell("their handles differ", "choose the build with `earlybird exec --mpi`, or link with that of this MPI");
  return is_of_our_kind;
}

bool eb_loaded_mpi_is_ours(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length;
#if defined(OPEN_MPI)
  if (is_late) {
    fprintf(stderr, "earlybird: this program loads Open MPI while it runs: partitioned communication is left to the MPI; to have "
                    "ours, preload Open MPI's libmpi.so.40 after libearlybird.so\n");
    return false;
  }
#endif
  if (PMPI_Get_library_version(version, &length) != MPI_SUCCESS) return false;
  if (strncmp(version, OUR_MPI, strlen(OUR_MPI)) == 0) return true;
  tell("partitioned communication is left to the MPI", "choose the build with `earlybird exec --mpi`");
  return false;
}
