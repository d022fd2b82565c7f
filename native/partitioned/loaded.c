/* Looks at the symbols of loaded objects and asks the MPI for its name. */
#include "partitioned/loaded.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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

static int is_wanted(const char *name) {
  return strcmp(name, "MPI_Psend_init") == 0 || strcmp(name, "MPI_Precv_init") == 0;
}

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

static int object_refers(struct dl_phdr_info *info, size_t size, void *found) {
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
  for (uint32_t s = 0; s < num; s++) {
    if (symbols[s].st_shndx == SHN_UNDEF && symbols[s].st_name && is_wanted(names + symbols[s].st_name)) {
      *(bool *)found = true;
      return 1;
    }
  }
  return 0;
}

bool eb_loaded_code_is_partitioned(void) {
  bool found = false;
  dl_iterate_phdr(object_refers, &found);
  return found;
}

bool eb_loaded_mpi_is_ours(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length;
  if (PMPI_Get_library_version(version, &length) != MPI_SUCCESS) return false;
  if (strncmp(version, OUR_MPI, strlen(OUR_MPI)) == 0) return true;
  version[strcspn(version, "\n,")] = '\0';
  fprintf(stderr,
          "earlybird: this process runs %.60s, and libearlybird was built for %s: partitioned communication is left to the MPI; "
          "choose the build with `earlybird exec --mpi`\n",
          version, OUR_MPI);
  return false;
}
