/* Lets allocations of the library fail, and no others; see library_memory.h for how to link. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#include "library_memory.h"

static int left = -1; /* allocations of the library until one is refused; -1: none is */
static int num_refused, says_refusals;

static int refuses_allocation(ElfW(Addr) offset) {
  if (left < 0 || left-- > 0) return 0;
  num_refused++;
  if (says_refusals) dprintf(2, "refused at %lx\n", (unsigned long)offset);
  return 1;
}

static void count_bytes(long num_bytes) { (void)num_bytes; }
