/* Memory of large arrays in huge pages, where the system has them. */
#include "arrays.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Smaller ones would have few huge pages, or none. */
enum { MIN_HUGE_BYTES = 4 << 20, PAGE_BYTES = 4096 };

static void ask_for_huge_pages(void *array, size_t num_bytes) {
#ifdef MADV_HUGEPAGE
  if (!array || num_bytes < MIN_HUGE_BYTES) return;
  const uintptr_t first = ((uintptr_t)array + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
  madvise((void *)first, num_bytes - (first - (uintptr_t)array), MADV_HUGEPAGE); /* a wish */
#else
  (void)array, (void)num_bytes;
#endif
}

void *eb_array(size_t num_bytes) {
  void *array = malloc(num_bytes);
  ask_for_huge_pages(array, num_bytes);
  return array;
}

void *eb_array_of_zeros(size_t num, size_t item_bytes) {
  void *array = calloc(num, item_bytes); /* which touches no page of a large one */
  ask_for_huge_pages(array, num * item_bytes);
  return array;
}
