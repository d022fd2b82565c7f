/* Refuses memory to the library, and to nobody else. The program must be linked with -rdynamic: its malloc is to be found before the
 * system's, by the library too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static ElfW(Addr) library_begin, library_end;
static int left = -1; /* allocations of the library until one is refused; -1: none is */
static int num_refused, says_refusals;

static int refuses(const void *caller) {
  const ElfW(Addr) at = (ElfW(Addr))caller;
  if (left < 0 || at < library_begin || at >= library_end || left-- > 0) return 0;
  num_refused++;
  if (says_refusals) dprintf(2, "refused at %lx\n", (unsigned long)(at - library_begin)); /* for addr2line */
  return 1;
}

void *malloc(size_t size) { return refuses(__builtin_return_address(0)) ? NULL : __libc_malloc(size); }
void *calloc(size_t num, size_t size) { return refuses(__builtin_return_address(0)) ? NULL : __libc_calloc(num, size); }
void *realloc(void *old, size_t size) { return refuses(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size); }
void *aligned_alloc(size_t alignment, size_t size) {
  return refuses(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

static int find_library(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size, (void)data;
  if (!strstr(info->dlpi_name, "libearlybird.so")) return 0;
  library_begin = info->dlpi_addr;
  for (int h = 0; h < info->dlpi_phnum; h++) {
    const ElfW(Addr) end = info->dlpi_addr + info->dlpi_phdr[h].p_vaddr + info->dlpi_phdr[h].p_memsz;
    if (end > library_end) library_end = end;
  }
  return 1;
}

/* Before the first refusal. */
static void find_memory_users(void) { dl_iterate_phdr(find_library, NULL); }
