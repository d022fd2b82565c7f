/* Reads the dynamic sections of loaded objects: symbols, hash tables, relocations. */
#include "interpose/objects/symbols.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* MIPS, whose global offset table has no relocations, is not served. */
#if UINTPTR_MAX > 0xffffffffu
#define SYMBOL_OF(info) ELF64_R_SYM(info)
#define BINDING_OF(info) ELF64_ST_BIND(info)
#define VISIBILITY_OF(other) ELF64_ST_VISIBILITY(other)
#else
#define SYMBOL_OF(info) ELF32_R_SYM(info)
#define BINDING_OF(info) ELF32_ST_BIND(info)
#define VISIBILITY_OF(other) ELF32_ST_VISIBILITY(other)
#endif

/* The one hash table whose entries have the width of an address, on two machines. */
#if defined(__s390x__) || defined(__alpha__)
typedef uint64_t sysv_word;
#else
typedef uint32_t sysv_word;
#endif

static bool has_address(const eb_object *object, uintptr_t address) {
  for (int s = 0; s < object->num_segments; s++) {
    const ElfW(Phdr) *segment = &object->segments[s];
    if (segment->p_type == PT_LOAD && address - object->base - segment->p_vaddr < segment->p_memsz) return true;
  }
  return false;
}

/* An address in a dynamic section. glibc has added the base to it, but not in the vDSO; musl never does. */
static const void *located(const eb_object *object, uintptr_t address) {
  if (!has_address(object, address)) address += object->base;
  return has_address(object, address) ? (const void *)address : NULL;
}

static void read_dynamic_section(eb_object *object, const ElfW(Dyn) *entry) {
  size_t plt_entry_bytes = sizeof(ElfW(Rela));
  eb_relocations *const plt = &object->relocations[0], *const rel = &object->relocations[1], *const rela = &object->relocations[2];
  rel->entry_bytes = sizeof(ElfW(Rel));
  rela->entry_bytes = sizeof(ElfW(Rela));
  /* DT_RELR has relative relocations only: no symbols. */
  for (; entry->d_tag != DT_NULL; entry++) {
    switch (entry->d_tag) {
      case DT_SYMTAB: object->symbols = located(object, entry->d_un.d_ptr); break;
      case DT_STRTAB: object->names = located(object, entry->d_un.d_ptr); break;
      case DT_HASH: object->sysv_hash = located(object, entry->d_un.d_ptr); break;
      case DT_GNU_HASH: object->gnu_hash = located(object, entry->d_un.d_ptr); break;
      case DT_JMPREL: plt->at = located(object, entry->d_un.d_ptr); break;
      case DT_PLTRELSZ: plt->size_bytes = entry->d_un.d_val; break;
      case DT_PLTREL: plt_entry_bytes = entry->d_un.d_val == DT_REL ? sizeof(ElfW(Rel)) : sizeof(ElfW(Rela)); break;
      case DT_REL: rel->at = located(object, entry->d_un.d_ptr); break;
      case DT_RELSZ: rel->size_bytes = entry->d_un.d_val; break;
      case DT_RELA: rela->at = located(object, entry->d_un.d_ptr); break;
      case DT_RELASZ: rela->size_bytes = entry->d_un.d_val; break;
      default: break;
    }
  }
  plt->entry_bytes = plt_entry_bytes;
  if (!object->names) object->symbols = NULL;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *to) {
  eb_objects *objects = to;
  (void)size;
  if ((objects->num & (objects->num + 1)) == 0) { /* 0, 1, 3, 7 ...: full */
    eb_object *larger = realloc(objects->at, (2 * objects->num + 1) * sizeof *larger);
    if (!larger) return 1;
    objects->at = larger;
  }
  const bool is_first = objects->num == 0;
  eb_object *object = &objects->at[objects->num++];
  *object = (eb_object){
      .path = info->dlpi_name ? info->dlpi_name : "",
      .is_program = is_first,
      .base = info->dlpi_addr,
      .segments = info->dlpi_phdr,
      .num_segments = info->dlpi_phnum,
  };
  for (int s = 0; s < object->num_segments; s++)
    if (object->segments[s].p_type == PT_DYNAMIC)
      read_dynamic_section(object, (const void *)(object->base + object->segments[s].p_vaddr));
  return 0;
}

eb_objects eb_objects_list(void) {
  /* Copied, because dlsym must not be called under the lock that dl_iterate_phdr takes. */
  eb_objects objects = {NULL, 0};
  if (dl_iterate_phdr(add_object, &objects) != 0) eb_objects_free(&objects);
  return objects;
}

void eb_objects_free(eb_objects *objects) {
  free(objects->at);
  *objects = (eb_objects){NULL, 0};
}

const eb_object *eb_objects_at(const eb_objects *objects, const void *address) {
  for (size_t o = 0; o < objects->num; o++)
    if (has_address(&objects->at[o], (uintptr_t)address)) return &objects->at[o];
  return NULL;
}

static bool is_named(const eb_object *object, size_t symbol, const char *name) {
  return strcmp(object->names + object->symbols[symbol].st_name, name) == 0;
}

/* The layout of DT_GNU_HASH: four 32-bit words, a Bloom filter, buckets, and chains of hashes that end in an odd one. */
typedef struct {
  uint32_t num_buckets, first;
  const uint32_t *buckets, *chains;
} gnu_table;

static gnu_table gnu_table_of(const eb_object *object) {
  const uint32_t *words = object->gnu_hash;
  const uint32_t *buckets = words + 4 + words[2] * (sizeof(ElfW(Addr)) / sizeof *words);
  return (gnu_table){words[0], words[1], buckets, buckets + words[0]};
}

static const ElfW(Sym) *find_by_gnu_hash(const eb_object *object, const char *name) {
  const gnu_table table = gnu_table_of(object);
  uint32_t hash = 5381;
  for (const unsigned char *c = (const void *)name; *c; c++) hash = 33 * hash + *c;
  uint32_t symbol = table.num_buckets ? table.buckets[hash % table.num_buckets] : 0;
  if (symbol < table.first || symbol == 0) return NULL;
  for (;; symbol++) {
    const uint32_t chained = table.chains[symbol - table.first];
    if ((chained | 1) == (hash | 1) && is_named(object, symbol, name)) return &object->symbols[symbol];
    if (chained & 1) return NULL;
  }
}

static const ElfW(Sym) *find_by_sysv_hash(const eb_object *object, const char *name) {
  const sysv_word *words = object->sysv_hash;
  const sysv_word num_buckets = words[0], *buckets = words + 2, *chains = buckets + num_buckets;
  uint32_t hash = 0;
  for (const unsigned char *c = (const void *)name; *c; c++) {
    hash = (hash << 4) + *c;
    hash = (hash ^ ((hash & 0xf0000000u) >> 24)) & 0x0fffffffu;
  }
  for (sysv_word symbol = num_buckets ? buckets[hash % num_buckets] : 0; symbol != STN_UNDEF; symbol = chains[symbol])
    if (is_named(object, symbol, name)) return &object->symbols[symbol];
  return NULL;
}

const ElfW(Sym) *eb_object_find(const eb_object *object, const char *name) {
  if (!object->symbols) return NULL;
  if (object->gnu_hash) return find_by_gnu_hash(object, name);
  return object->sysv_hash ? find_by_sysv_hash(object, name) : NULL;
}

static bool is_for_others(const ElfW(Sym) *symbol) {
  const int visibility = VISIBILITY_OF(symbol->st_other);
  return symbol->st_shndx != SHN_UNDEF && BINDING_OF(symbol->st_info) != STB_LOCAL &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

bool eb_object_defines(const eb_object *object, const char *name) {
  const ElfW(Sym) *symbol = eb_object_find(object, name);
  return symbol && is_for_others(symbol);
}

/* One more than the last symbol that the hash table leads to: the number of symbols is stored nowhere else. */
static size_t count_symbols(const eb_object *object) {
  if (object->sysv_hash) return ((const sysv_word *)object->sysv_hash)[1];
  if (!object->gnu_hash) return 0;
  const gnu_table table = gnu_table_of(object);
  uint32_t last = 0;
  for (uint32_t b = 0; b < table.num_buckets; b++)
    if (table.buckets[b] > last) last = table.buckets[b];
  if (last < table.first || last == 0) return 0; /* nothing is defined */
  while (!(table.chains[last - table.first] & 1)) last++;
  return (size_t)last + 1;
}

const char *eb_object_defined(const eb_object *object, eb_name_test *test, void *with) {
  const size_t num = object->symbols ? count_symbols(object) : 0;
  for (size_t s = 0; s < num; s++) {
    const char *name = object->names + object->symbols[s].st_name;
    if (is_for_others(&object->symbols[s]) && test(name, with)) return name;
  }
  return NULL;
}

/* By the relocations, because symbols that are referred to but not defined are in no GNU hash table: in a program that is
 * not position independent that table is empty. */
const char *eb_object_referred(const eb_object *object, eb_name_test *test, void *with) {
  if (!object->symbols) return NULL;
  for (int t = 0; t < 3; t++) {
    const eb_relocations *table = &object->relocations[t];
    size_t last = 0; /* neighbours often share a symbol; relative relocations have none */
    if (!table->at) continue;
    for (size_t at = 0; at + table->entry_bytes <= table->size_bytes; at += table->entry_bytes) {
      const ElfW(Rel) *relocation = (const void *)((const char *)table->at + at); /* ElfW(Rela) has the same first members */
      const size_t symbol = SYMBOL_OF(relocation->r_info);
      if (symbol == last || symbol == STN_UNDEF) continue;
      last = symbol;
      const char *name = object->names + object->symbols[symbol].st_name;
      if (test(name, with)) return name;
    }
  }
  return NULL;
}
