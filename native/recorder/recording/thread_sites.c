/* A table that only grows, with a place for each site by its hash, and the sites in the order of their appearance. */
#include "recorder/recording/thread_sites.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Programs create and join threads in few places; those beyond have no name. */
enum { MAX_SITES = 1024, HASH_BITS = 11 };
_Static_assert(1 << HASH_BITS >= 2 * MAX_SITES, "there is always a free place");

static const void *by_hash[1 << HASH_BITS], *sites[MAX_SITES];
static uint32_t num_sites, num_written;

void eb_thread_site_add(const void *site) {
  uint32_t place = (uint32_t)((uint64_t)(uintptr_t)site * 0x9e3779b97f4a7c15u >> (64 - HASH_BITS));
  if (!site) return;
  for (;; place = (place + 1) % (1 << HASH_BITS)) {
    const void *other = __atomic_load_n(&by_hash[place], __ATOMIC_ACQUIRE);
    if (other == site) return;
    if (other) continue;
    /* Several threads may be here at once, fewer than there are free places. */
    if (__atomic_load_n(&num_sites, __ATOMIC_RELAXED) >= MAX_SITES) return;
    if (__atomic_compare_exchange_n(&by_hash[place], &other, site, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) break;
    if (other == site) return;
  }
  const uint32_t number = __atomic_fetch_add(&num_sites, 1, __ATOMIC_RELAXED);
  if (number < MAX_SITES) __atomic_store_n(&sites[number], site, __ATOMIC_RELEASE);
}

const void *eb_thread_site_unwritten(void) {
  const void *const site = num_written < MAX_SITES ? __atomic_load_n(&sites[num_written], __ATOMIC_ACQUIRE) : NULL;
  if (site) num_written++;
  return site;
}
