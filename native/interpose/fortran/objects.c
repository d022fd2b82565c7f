/* Reads what the loader knows of a loaded object: its symbols, and the addresses it calls other objects through. */
#include "interpose/fortran/objects.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

/* The relocations by which an object gets the address of a symbol; on other machines none is known. */
#if defined(__x86_64__)
#define IS_ADDRESS(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#elif defined(__aarch64__)
#define IS_ADDRESS(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#elif defined(__powerpc64__) && defined(_CALL_ELF) && _CALL_ELF == 2
#define IS_ADDRESS(type) ((type) == R_PPC64_JMP_SLOT || (type) == R_PPC64_GLOB_DAT || (type) == R_PPC64_ADDR64)
#elif defined(__riscv) && __riscv_xlen == 64
#define IS_ADDRESS(type) ((type) == R_RISCV_JUMP_SLOT || (type) == R_RISCV_64)
#else
#define IS_ADDRESS(type) ((void)(type), false)
#endif

bool eb_object_read(const struct dl_phdr_info *info, eb_object *object) {
  *object = (eb_object){.base = info->dlpi_addr};
  for (int h = 0; h < info->dlpi_phnum; h++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[h];
    const uintptr_t begin = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_DYNAMIC) object->dynamic = (const void *)begin;
    if (header->p_type != PT_GNU_RELRO) continue;
    /* Whole pages, as the loader does it. */
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    object->read_only_begin = begin & ~(page - 1);
    object->read_only_end = (begin + header->p_memsz) & ~(page - 1);
  }
  size_t bytes[2] = {0, 0};
  bool with_addends = false;
  for (const ElfW(Dyn) *entry = object->dynamic; entry && entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_PLTRELSZ) bytes[0] = entry->d_un.d_val;
    if (entry->d_tag == DT_RELASZ) bytes[1] = entry->d_un.d_val;
    if (entry->d_tag == DT_PLTREL) with_addends = entry->d_un.d_val == DT_RELA;
    /* glibc has relocated these addresses, but for the vDSO's, which is below its base then. */
    if (entry->d_un.d_ptr < info->dlpi_addr) continue;
    const void *at = (const void *)entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) object->symbols = at;
    if (entry->d_tag == DT_STRTAB) object->names = at;
    if (entry->d_tag == DT_GNU_HASH) object->gnu_hash = at;
    if (entry->d_tag == DT_HASH) object->hash = at;
    if (entry->d_tag == DT_JMPREL) object->relocations[0] = at;
    if (entry->d_tag == DT_RELA) object->relocations[1] = at;
  }
  if (with_addends && object->relocations[0]) object->num_relocations[0] = bytes[0] / sizeof(ElfW(Rela));
  if (object->relocations[1]) object->num_relocations[1] = bytes[1] / sizeof(ElfW(Rela));
  return object->symbols && object->names;
}

static const void *function_at(const eb_object *object, uint32_t index, const char *name) {
  const ElfW(Sym) *symbol = &object->symbols[index];
  if (symbol->st_shndx == SHN_UNDEF || (symbol->st_info & 0xf) != STT_FUNC) return NULL;
  if (strcmp(object->names + symbol->st_name, name) != 0) return NULL;
  return (const void *)(object->base + symbol->st_value);
}

static const void *look_up_gnu(const eb_object *object, const char *name) {
  const uint32_t *table = object->gnu_hash, num_buckets = table[0], first = table[1], num_bloom = table[2];
  const uint32_t *buckets = table + 4 + num_bloom * (sizeof(ElfW(Addr)) / 4), *chains = buckets + num_buckets;
  uint32_t hash = 5381;
  for (const char *at = name; *at; at++) hash = hash * 33 + (unsigned char)*at;
  uint32_t index = num_buckets ? buckets[hash % num_buckets] : 0;
  if (index < first) return NULL;
  for (;; index++) {
    const uint32_t entry = chains[index - first];
    const void *found = (entry | 1) == (hash | 1) ? function_at(object, index, name) : NULL;
    if (found || (entry & 1)) return found;
  }
}

static const void *look_up_sysv(const eb_object *object, const char *name) {
  const void *found = NULL;
  for (uint32_t index = 1; !found && index < object->hash[1]; index++) found = function_at(object, index, name);
  return found;
}

const void *eb_object_function(const eb_object *object, const char *name) {
  if (object->gnu_hash) return look_up_gnu(object, name);
  return object->hash ? look_up_sysv(object, name) : NULL;
}

const char *eb_object_relocated_name(const eb_object *object, const ElfW(Rela) *relocation) {
#if __ELF_NATIVE_CLASS == 64
  const uint32_t type = ELF64_R_TYPE(relocation->r_info), symbol = (uint32_t)ELF64_R_SYM(relocation->r_info);
#else
  const uint32_t type = ELF32_R_TYPE(relocation->r_info), symbol = ELF32_R_SYM(relocation->r_info);
#endif
  if (!IS_ADDRESS(type) || symbol == 0 || relocation->r_addend != 0) return NULL;
  return object->names + object->symbols[symbol].st_name;
}
