/* Symbols of the ELF objects in this process: the names that each defines and refers to. */
#ifndef EB_SYMBOLS_H
#define EB_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  const void *at; /* NULL: none */
  size_t size_bytes, entry_bytes;
} eb_relocations;

/* A symbol that only the recorder defines. */
#define EARLYBIRD_RECORDER_MARK "earlybird_recorder_passes_on"

/* A loaded object. Pointers lead into its own memory and hold while it stays loaded. */
typedef struct {
  const char *path; /* as known to the loader; glibc's name for the program is empty */
  bool is_program;  /* the executable: the first of all */
  uintptr_t base;
  const ElfW(Phdr) * segments;
  int num_segments;
  const ElfW(Sym) * symbols; /* NULL: it has none */
  const char *names;
  const void *gnu_hash, *sysv_hash;
  eb_relocations relocations[3];
} eb_object;

typedef struct {
  eb_object *at;
  size_t num;
} eb_objects;

/* All objects in the order in which the loader searches those that were there at the start. To be freed with
 * eb_objects_free. Empty if memory is short. */
eb_objects eb_objects_list(void);
void eb_objects_free(eb_objects *objects);

/* The object that an address belongs to; NULL when none does. */
const eb_object *eb_objects_at(const eb_objects *objects, const void *address);

/* The entry of a name in the hash table of the object; NULL: none. A program that is not position independent has
 * entries there for functions of others, too, whose address it took: st_shndx is SHN_UNDEF then. */
const ElfW(Sym) * eb_object_find(const eb_object *object, const char *name);

/* Does it define a name for others? */
bool eb_object_defines(const eb_object *object, const char *name);

typedef bool eb_name_test(const char *name, void *with);

/* The first name that the object defines for others, or that it refers to, for which the test is true; NULL: none. */
const char *eb_object_defined(const eb_object *object, eb_name_test *test, void *with);
const char *eb_object_referred(const eb_object *object, eb_name_test *test, void *with);

#endif
