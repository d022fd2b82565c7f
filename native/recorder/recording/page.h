/* The page of this process, and the file that it is mapped from. */
#ifndef EB_PAGE_H
#define EB_PAGE_H

#include "recorder/recording/awaited.h"

/* Creates the file. After a failure there is none. Where no page may be mapped, or who reads it is on another node, the file gets a
 * copy of the calls from time to time, and the page is a file of the same name in shared memory: in /dev/shm/earlybird-UID-HASH,
 * with the FNV-1a hash of the folder's path. */
void eb_page_create(const char *path, bool is_mapped, double tick_s, uint64_t begin_ticks);

/* Starts the agent of this node, if the page is in shared memory; `path` is of its file, `num_nodes` how many there are. */
void eb_page_show(const char *path, uint64_t num_nodes);

/* Writes the copy, if there is one. By one thread at a time. */
void eb_page_write(uint64_t now_ticks);

/* The place of a thread; NULL: it has none. */
eb_open_call *eb_open_call_of(uint32_t thread);

/* The rank has ended, and how is known: the file is removed. */
void eb_page_remove(void);

#endif
