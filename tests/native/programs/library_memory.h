/* Watches only the memory that libearlybird allocates. The program must be linked with -rdynamic: the library must find
 * the program's malloc before the system's. */
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static ElfW(Addr) library_begin, library_end;

/* The program defines both. `offset`: of the call in the library, for addr2line. */
static int refuses_allocation(ElfW(Addr) offset);
static void count_bytes(long num_bytes); /* allocated, or freed where negative, with the heap's own word */

static int is_of_library(const void *caller) { return (ElfW(Addr))caller >= library_begin && (ElfW(Addr))caller < library_end; }

static int refuses(const void *caller) { return is_of_library(caller) && refuses_allocation((ElfW(Addr))caller - library_begin); }

static long heap_bytes(void *block) { return (long)malloc_usable_size(block) + (long)sizeof(size_t); }

static void *counted(const void *caller, void *block) {
  if (block && is_of_library(caller)) count_bytes(heap_bytes(block));
  return block;
}

static void discount(const void *caller, void *block) {
  if (block && is_of_library(caller)) count_bytes(-heap_bytes(block));
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t size) { return refuses(CALLER) ? NULL : counted(CALLER, __libc_malloc(size)); }
void *calloc(size_t num, size_t size) { return refuses(CALLER) ? NULL : counted(CALLER, __libc_calloc(num, size)); }
void *realloc(void *old, size_t size) {
  if (refuses(CALLER)) return NULL;
  discount(CALLER, old);
  return counted(CALLER, __libc_realloc(old, size));
}
void *aligned_alloc(size_t alignment, size_t size) {
  return refuses(CALLER) ? NULL : counted(CALLER, __libc_memalign(alignment, size));
}
void free(void *block) {
  discount(CALLER, block);
  __libc_free(block);
}

static int has_library(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size, (void)data;
  if (!strstr(info->dlpi_name, "libearlybird.so")) return 0;
  library_begin = info->dlpi_addr;
  for (int h = 0; h < info->dlpi_phnum; h++) {
    const ElfW(Addr) end = info->dlpi_addr + info->dlpi_phdr[h].p_vaddr + info->dlpi_phdr[h].p_memsz;
    if (end > library_end) library_end = end;
  }
  return 1;
}

/* Nothing is watched before this call. */
static void find_library(void) { dl_iterate_phdr(has_library, NULL); }
