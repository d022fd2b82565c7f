/* Descriptions of persistent collectives. */
#include "recorder/recording/persistent.h"

#include <stdlib.h>

typedef struct {
  eb_role role;
  int peer;
  uint64_t bytes;
} part;

struct eb_persistent {
  const eb_communicator *communicator;
  eb_awaited_communicator *awaited; /* its place in the page; NULL: none */
  bool is_short_of_memory; /* then no start is counted */
  size_t num, capacity;
  part *parts;
};

/* In place of a description without memory; nothing is written to it. */
static eb_persistent none = {.is_short_of_memory = true};

void eb_persistent_begin(const eb_span *span) {
  eb_persistent *persistent = calloc(1, sizeof *persistent);
  span->thread->persistent = persistent ? persistent : &none;
}

static bool grow(eb_persistent *persistent) {
  const size_t capacity = 2 * persistent->capacity + 2;
  part *parts = realloc(persistent->parts, capacity * sizeof *parts);
  if (!parts) return false;
  persistent->parts = parts;
  persistent->capacity = capacity;
  return true;
}

void eb_persistent_add(eb_persistent *persistent, eb_role role, const eb_communicator *communicator, int peer, uint64_t bytes) {
  if (persistent->is_short_of_memory) return;
  if (persistent->num == persistent->capacity && !grow(persistent)) {
    persistent->is_short_of_memory = true;
    return;
  }
  persistent->communicator = communicator;
  persistent->parts[persistent->num++] = (part){role, peer, bytes};
}

void eb_persistent_end(const eb_span *span, unsigned call, eb_communicator *communicator, const MPI_Request *request) {
  eb_persistent *persistent = span->thread->persistent;
  span->thread->persistent = NULL;
  eb_add_call(span, call, persistent->communicator, EB_PEER_NONE, 0);
  if (span->has_failed || persistent->is_short_of_memory) {
    eb_persistent_free(persistent);
    return;
  }
  /* All ranks create theirs in the same order, and may start them in any. */
  if (communicator) persistent->awaited = eb_communicator_object(communicator, EB_OBJECT_PERSISTENT);
  const uint32_t what = eb_traced_what(eb_number_of(persistent->communicator), EB_ROLE_STARTED, EB_TRACED_COMPLETION);
  const eb_request collective = {.kind = EB_REQUEST_COLLECTIVE,
                                 .call = call,
                                 .peer = EB_PEER_NONE,
                                 .tag = EB_TAG_NONE,
                                 .what = what,
                                 .persistent = persistent};
  eb_requests_add(eb_request_key(*request), &collective);
}

static void post(const eb_span *span, MPI_Request handle, const eb_request *request, int root) {
  eb_awaited_communicator *const awaited = request->persistent->awaited;
  if (!awaited) return;
  const uint64_t number = eb_awaited_enter(awaited, request->call, root, EB_BYTES_UNKNOWN, span->thread->open->site);
  eb_span_posts_on(span, handle, EB_AWAITED_COLLECTIVE, request->call, awaited->number, number, root, EB_TAG_NONE, EB_BYTES_UNKNOWN,
                   0);
}

void eb_persistent_started(const eb_span *span, MPI_Request handle, const eb_request *request) {
  const eb_persistent *persistent = request->persistent;
  int root = EB_PEER_NONE;
  for (size_t p = 0; p < persistent->num; p++) {
    const part *each = &persistent->parts[p];
    const bool is_start = each->role == EB_ROLE_STARTED;
    if (is_start) root = each->peer;
    if (!is_start) eb_add_message(span, request->call, each->role, persistent->communicator, each->peer, EB_TAG_NONE, each->bytes);
    else eb_add(span, request->call, each->role, persistent->communicator, each->peer, EB_TAG_NONE, 1, 0, each->bytes, 0);
  }
  post(span, handle, request, root);
}

void eb_persistent_free(eb_persistent *persistent) {
  if (persistent == &none) return;
  eb_communicator_object_free(persistent->awaited, EB_OBJECT_PERSISTENT);
  free(persistent->parts);
  free(persistent);
}
