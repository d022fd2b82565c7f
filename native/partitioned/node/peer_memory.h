/* Memory of another process of this node, from and to which the system copies (Linux: process_vm_readv). Uses no MPI. */
#ifndef EB_PEER_MEMORY_H
#define EB_PEER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A process, and where it has a number of its own: another process may have the same process number in another name space, or later. */
typedef struct {
  int64_t process;
  uint64_t mark_address, mark;
} eb_peer;

/* This process, as others name it. */
eb_peer eb_peer_self(void);
/* May others reach its memory as they could when it was first named? */
bool eb_peer_self_is_open(void);

/* Is this that process, and may its memory be read and written from here? Tried; 0, or the error. */
int eb_peer_try(const eb_peer *peer);
/* Has the process ended? False where that is not known. */
bool eb_peer_has_ended(const eb_peer *peer);

/* Copies from or to an address of the peer. Returns 0, or the error: then any part of the bytes may have been copied. */
int eb_peer_read(const eb_peer *peer, uint64_t from, void *to, size_t num_bytes);
int eb_peer_write(const eb_peer *peer, uint64_t to, const void *from, size_t num_bytes);

/* Can the system copy from and to this memory of this process for another one? Of a device's it may not be able to. Asked of the first
 * and the last byte. */
bool eb_peer_memory_is_plain(const void *begin, size_t num_bytes);

#endif
