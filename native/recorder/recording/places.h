/* Places in the program that call the MPI: not those in the MPI's Fortran bindings or in mpi4py, but their callers. */
#ifndef EB_PLACES_H
#define EB_PLACES_H

#include <stdbool.h>
#include <stdint.h>

/* Of a wrapper: the address after the call, and the wrapper's canonical frame address. */
typedef struct {
  const void *address;
  const char *frame;
} eb_caller;

enum { EB_SITES_REMEMBERED = 64 };

/* Of a thread. */
typedef struct {
  const void *plain[EB_SITES_REMEMBERED]; /* addresses that are places of the program themselves */
  /* Where its stack is, once that has been asked; both NULL: not known. */
  bool is_stack_asked;
  const char *stack_begin, *stack_end;
} eb_sites;

/* A place in a Python program. */
typedef struct {
  const void *code; /* of Python; kept for ever, so that no other code gets its address */
  int instruction;
  int line;
  const char *file, *function;
  bool is_written; /* whoever writes sets it */
} eb_python_place;

/* The place of the program that a caller is, or on whose behalf it calls. Of Python an eb_python_place. */
const void *eb_site_find(eb_sites *sites, eb_caller caller);

/* Is a frame on the stack of the thread? False where that is not known, and on those of coroutines. */
bool eb_site_is_on_stack(eb_sites *sites, const char *frame);

static inline unsigned eb_site_hash(const void *address) {
  return (unsigned)((uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u >> 58);
}
static inline const void *eb_site_of(eb_sites *sites, eb_caller caller) {
  if (__builtin_expect(sites->plain[eb_site_hash(caller.address)] == caller.address, 1)) return caller.address;
  return eb_site_find(sites, caller);
}

/* NULL: the site is an address in the program. */
const eb_python_place *eb_python_place_at(const void *site);

/* Those that no one has written yet, one after another; NULL: no more. Only under the lock of whoever writes. */
eb_python_place *eb_python_place_unwritten(void);

/* The place in Python on whose behalf this thread calls; NULL: none, or it cannot be known without waiting for other threads. */
const void *eb_python_place_find(void);

#endif
