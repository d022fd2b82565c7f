/* The call in which each thread is, where other processes see it and where it stays after the process has been killed: a page
 * of a file that is mapped.
 *
 * The counts of a hung program are in the other files, but what a thread never returns from is not counted. On a file system on
 * which a mapped page may end the program with SIGBUS, a shared one or one that copies on write, the page is written with the
 * recording and says when that was.
 */
#ifndef EB_OPEN_CALLS_H
#define EB_OPEN_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#define EB_OPEN_CALLS_MAGIC 0x314e45504f4245u /* "EBOPEN1" */
enum { EB_OPEN_CALLS_MAX = 63 };              /* threads; more are not kept */

typedef struct {
  uint64_t begin_ticks; /* 0: in no call */
  uint64_t site;
  uint32_t call, communicator; /* 0: none, or not known */
  int32_t peer, tag;           /* as in a trace */
  uint64_t reserved[4];
} eb_open_call;

/* Takes the place of the first call. */
typedef struct {
  uint64_t magic;
  uint32_t num, call_bytes;
  double tick_s;
  uint64_t begin_ticks;   /* of the recording */
  uint64_t written_ticks; /* when the page was written; 0: it is mapped, and as the process left it */
  uint64_t reserved[3];
} eb_open_calls_head;

/* Creates the file. After a failure there is none. */
void eb_open_calls_create(const char *path, bool is_mapped, double tick_s, uint64_t begin_ticks);

/* Writes the page if it is not mapped. By one thread at a time. */
void eb_open_calls_write(uint64_t now_ticks);

/* The place of a thread; NULL: it has none. */
eb_open_call *eb_open_call_of(uint32_t thread);

/* The rank has ended, and how is known: the file is removed. */
void eb_open_calls_remove(void);

#endif
