/* Looks up the functions behind the recorder's own. */
#include "recorder/recording/call.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void eb_calls_begin_numbers(void) {
  for (unsigned c = 0; c < eb_call_num(); c++) eb_calls_begin[c].number = c;
}

eb_function *eb_call_find(eb_call *call) {
  char profiling_name[80];
  /* By its MPI_ name first, because that is the one that tools define. */
  void *next = dlsym(RTLD_NEXT, call->name);
  if (!next) {
    /* An MPI that was loaded later, or one inside the program, is not behind us in the loader's order. */
    snprintf(profiling_name, sizeof profiling_name, "P%s", call->name);
    next = dlsym(RTLD_DEFAULT, profiling_name);
  }
  if (!next) {
    fprintf(stderr, "earlybird: the MPI of this process has no %s; run the program without `earlybird record`\n", call->name);
    exit(2);
  }
  __atomic_store_n(&call->next, (eb_function *)next, __ATOMIC_RELAXED);
  return (eb_function *)next;
}
