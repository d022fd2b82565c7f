/* The messages of an exchange by connection: one from each rank to each other rank. */
#ifndef EARLYBIRD_MODELS_CONNECTIONS_H
#define EARLYBIRD_MODELS_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "models.h"

enum { EB_SHORT = UINT32_MAX }; /* in connection_of: a message that is its connection, in one chunk */

typedef struct {
  uint32_t first, end; /* of its messages in eb_connections.message, in the order given */
  uint32_t src, dst;
} eb_connection;

/* Of millions of messages nearly all are short ones, for which nothing is kept: what happens to them is in the queues alone. */
struct eb_connections {
  int64_t num_messages, num_ranks, num_groups, num_connections, chunk_bytes;
  const uint32_t *src, *dst; /* the caller's, as the next two */
  const int64_t *size_bytes;
  const uint16_t *message_class;
  uint32_t *group;       /* of each rank */
  uint32_t *posted;       /* the messages by sending group, in the order in which they are posted */
  uint32_t *first_posted; /* of each group in these, and their end */
  uint32_t *connection_of; /* of each message: EB_SHORT or a connection; NULL if all are short */
  eb_connection *connections;
  uint32_t *message; /* by connection */
  int64_t *end_byte; /* of each of these, counted from the beginning of its connection */
};

#endif
