/* Configuration: environment variables, the same on every rank, and info keys of one request. */
#ifndef EB_CONFIG_H
#define EB_CONFIG_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/segmentation/cost.h"
#include "partitioned/segmentation/path.h"
#include "partitioned/segmentation/segment.h"

typedef enum { EB_AUTO, EB_PER_PARTITION, EB_NUMBER, EB_AGGREGATE } eb_segmenting;

typedef struct {
  eb_segmenting kind;
  int64_t value; /* the number of segments, or the bytes to aggregate up to */
} eb_mode;

/* Where costs of messages come from. */
typedef enum { EB_COST_UNKNOWN, EB_COST_STATED, EB_COST_KEPT, EB_COST_MEASURED } eb_cost_origin;

/* Lanes beyond this number have never been seen to help. */
enum { EB_MAX_LANES = 16 };

typedef struct {
  eb_mode mode;
  int num_lanes; /* communicators to send on */
  bool progress_thread, statistics;
  int tag_bits; /* 0: as many as the MPI has */
  eb_node_path node_path;
  int64_t node_bytes, pair_bytes; /* of the memory that the ranks of a node share, and of a pair of ranks in it */
  eb_cost intra_node, inter_node; /* num 0: to be measured */
  eb_cost_origin intra_node_origin, inter_node_origin;
  eb_cost node_ring, node_direct; /* of the other paths within a node; num 0: unknown, or there is none */
  eb_cost_origin node_ring_origin, node_direct_origin;
  char cache[1024];               /* where results are kept: a folder, "off", or empty for the user's */
  char trace[1024];               /* a path, or empty */
} eb_config;

/* Reads the environment. A value without sense gives false and one sentence in problem. */
bool eb_config_read(eb_config *config, char *problem, int problem_size);

/* Does the environment ask for a progress thread? Needed before MPI_Init. */
bool eb_config_wants_progress_thread(void);

/* The program sets a key of an info. The infos of requests are read if any was one of ours. */
void eb_config_note_key(const char *key);

/* The mode of one request: the info's keys where they make sense, else those of the environment. */
eb_mode eb_config_mode(const eb_config *config, MPI_Info info);

/* How the info's keys spread the segments of one request over lanes; the default where they make no sense. */
eb_spread eb_config_spread(MPI_Info info, int num_partitions, int64_t partition_bytes);

/* Bytes per segment that a mode asks for; 0 for EB_AUTO. */
int64_t eb_mode_step_bytes(eb_mode mode, int num_partitions, int64_t partition_bytes);

#endif
