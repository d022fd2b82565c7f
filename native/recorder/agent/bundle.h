/* The file in which the agent of a node keeps the pages of its ranks in the recording's folder: a head, and for each page a
 * description, a bitmap of its blocks, and those that are not all zeros. Numbers are in the byte order of the machine. */
#ifndef EB_BUNDLE_H
#define EB_BUNDLE_H

#include <stdint.h>

#define EB_BUNDLE_MAGIC 0x3145444f4e4245u /* "EBNODE1" */
enum { EB_BUNDLE_BLOCK = 64, EB_BUNDLE_NAME = 64 };

typedef enum { EB_BUNDLE_RUNS, EB_BUNDLE_STOPPED, EB_BUNDLE_ENDED } eb_bundle_state;

typedef struct {
  uint64_t magic;
  uint64_t serial;       /* of the writing, from 1: grows as long as the agent runs */
  uint64_t monotonic_ns; /* CLOCK_MONOTONIC of the node, before the pages were copied */
  uint32_t period_ms;    /* until the next writing, at most */
  uint32_t num_pages;
  uint32_t is_final; /* no rank of the node runs any more */
  uint32_t reserved[7];
} eb_bundle_head;

typedef struct {
  char name[EB_BUNDLE_NAME]; /* of the file of the page */
  uint32_t state, num_threads;
  uint32_t bytes, num_blocks; /* of the page, in whole blocks; that follow the bitmap, which has whole blocks, too */
} eb_bundled_page;

#endif
