/* Finds calls that do not reach the recorder. */
#include "recorder/recording/hidden.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpose/objects/symbols.h"

static const char here; /* its address identifies the recorder */

typedef struct {
  eb_objects objects;
  const eb_object *self, *hider;
  bool is_mpi;
} search;

static bool refers_to(const char *name, void *wanted) { return strcmp(name, wanted) == 0; }

/* Does code that is neither the recorder's nor the hider's nor the MPI's call it? */
static bool is_called(const search *in, const char *name) {
  for (size_t o = 0; o < in->objects.num; o++) {
    const eb_object *object = &in->objects.at[o];
    if (object == in->self || (object == in->hider && !object->is_program) || eb_object_defines(object, "PMPI_Init")) continue;
    if (object == in->hider || eb_object_referred(object, refers_to, (void *)name)) return true;
  }
  return false;
}

static bool is_hidden(const char *name, void *with) {
  search *in = with;
  if (strncmp(name, "MPI_", 4) != 0 || !islower((unsigned char)name[strlen("MPI_X")])) return false;
  for (size_t o = 0; o < in->objects.num; o++) {
    if (!eb_object_defines(&in->objects.at[o], name)) continue;
    if (&in->objects.at[o] == in->self) return false;
    in->hider = &in->objects.at[o];
    return in->is_mpi || is_called(in, name);
  }
  return false;
}

static void report(const char *folder, const char *name, const eb_object *by) {
  char path[4096], program[4096] = "the program";
  const char *hider = by->path;
  if (by->is_program) {
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) program[length] = '\0';
    hider = program;
  }
  const int length = snprintf(path, sizeof path, "%s/hidden", folder);
  const int file = length < (int)sizeof path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
  if (file < 0) return;
  (void)dprintf(file, "%s\n%s\n", name, hider);
  close(file);
  fprintf(stderr, "earlybird: %s of %s precedes the recorder's: what the program calls there is not recorded; record without it\n",
          name, hider);
}

void eb_hidden_report(bool is_mpi) {
  static const char *const first[] = {"MPI_Init", "MPI_Init_thread", "MPI_Finalize"};
  const char *folder = getenv("EARLYBIRD_RECORD"), *name = NULL;
  if (!folder || !*folder) return;
  search in = {.objects = eb_objects_list(), .is_mpi = is_mpi};
  in.self = eb_objects_at(&in.objects, &here);
  for (size_t f = 0; f < sizeof first / sizeof first[0] && !name; f++)
    if (in.self && is_hidden(first[f], &in)) name = first[f];
  if (!name && in.self) name = eb_object_defined(in.self, is_hidden, &in);
  if (name) report(folder, name, in.hider);
  eb_objects_free(&in.objects);
}
