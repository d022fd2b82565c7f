/* How the segments of a transfer travel. Both sides must use the same path in a start. */
#ifndef EB_PATH_H
#define EB_PATH_H

typedef enum {
  EB_PATH_MESSAGE, /* messages of the MPI */
  EB_PATH_RING,    /* copies in memory that the ranks of a node share: see node/ring.h */
  EB_PATH_DIRECT   /* the system copies from the memory of one rank to that of the other: see node/direct.h */
} eb_path;

enum { EB_NUM_PATHS = 3 };

/* What EARLYBIRD_NODE_PATH asks for. */
typedef enum {
  EB_NODE_AUTO,  /* the policy chooses by what it measures */
  EB_NODE_OFF,   /* the ranks of a node share no memory, and all segments are messages */
  EB_NODE_RING,  /* every transfer within a node that can use the ring does */
  EB_NODE_DIRECT /* the same of the other path */
} eb_node_path;

#define EB_NODE_PATH_DEFAULT EB_NODE_AUTO

#endif
