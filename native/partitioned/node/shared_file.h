/* An anonymous file in memory, which other processes of the same user open through the process that has created it. Uses no MPI. */
#ifndef EB_SHARED_FILE_H
#define EB_SHARED_FILE_H

#include <stdint.h>

/* Where a file is, and which one it is: a process in another name space may have the same number. num_bytes 0: none. */
typedef struct {
  int64_t process, num_bytes;
  uint64_t device, inode;
  int descriptor;
} eb_shared_file;

/* Creates a file of so many bytes, which take no memory before they are written, and which only its user can open. Returns its
 * descriptor, or -1 with errno. It has to stay open until others have opened it. */
int eb_shared_file_create(int64_t num_bytes, eb_shared_file *made);
/* Opens the file of another process; returns the descriptor, or -1 with errno. */
int eb_shared_file_open(const eb_shared_file *file);
/* Maps a file; NULL with errno. The descriptor is then no longer needed. */
void *eb_shared_file_map(int descriptor, int64_t num_bytes);
void eb_shared_file_unmap(void *memory, int64_t num_bytes);
/* No effect on -1. */
void eb_shared_file_close(int descriptor);

#endif
