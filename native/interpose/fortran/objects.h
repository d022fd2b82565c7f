/* Reads what the loader knows of a loaded object: its symbols, and the addresses it calls other objects through. */
#ifndef EB_OBJECTS_H
#define EB_OBJECTS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  ElfW(Addr) base;
  const ElfW(Dyn) *dynamic;
  const ElfW(Sym) *symbols;
  const char *names;
  const uint32_t *gnu_hash, *hash;            /* either may be NULL */
  const ElfW(Rela) *relocations[2];           /* of functions that are called, of other addresses */
  size_t num_relocations[2];
  uintptr_t read_only_begin, read_only_end;   /* what the loader has made read-only after it had filled it in */
} eb_object;

/* False where the object has no symbols, as the kernel's own has not. */
bool eb_object_read(const struct dl_phdr_info *info, eb_object *object);

/* The object's own definition of a function, NULL where it has none. */
const void *eb_object_function(const eb_object *object, const char *name);

/* The name of the symbol whose address stands where a relocation points to; NULL for relocations that are not the
 * address of a symbol alone. */
const char *eb_object_relocated_name(const eb_object *object, const ElfW(Rela) *relocation);

#endif
