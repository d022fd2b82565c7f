/* Requests whose messages are counted later: receives when they complete, persistent and partitioned ones when they start.
 *
 * With MPI_THREAD_MULTIPLE the MPI may give a handle to another thread between the end of a call that completes it and our
 * search for it. So a completing call asks for the ticket of its request beforehand. If several threads may call the MPI, also
 * one at a time, all other requests are here, too: else what another thread has not yet removed would be taken for them, and
 * nobody knew whose epoch a completed request had kept open. */
#ifndef EB_RECORDED_REQUESTS_H
#define EB_RECORDED_REQUESTS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "recorder/recording/communicators.h"
#include "recorder/recording/epoch.h"

typedef enum {
  EB_REQUEST_RECEIVE,             /* bytes and peer are in the status */
  EB_REQUEST_RECEIVE_NO_STATUS,   /* they are as the call says, because the MPI fills no status */
  EB_REQUEST_PERSISTENT_RECEIVE,  /* the same, at every completion */
  EB_REQUEST_PERSISTENT_SEND,     /* counted at every start */
  EB_REQUEST_PARTITIONED_SEND,    /* the same */
  EB_REQUEST_PARTITIONED_RECEIVE, /* at every completion; statuses of partitioned receives are not reliable on Open MPI 5.0 */
  EB_REQUEST_COLLECTIVE,          /* a persistent one: counted at every start */
  EB_REQUEST_MESSAGE,             /* a matched message, which becomes a receive */
  EB_REQUEST_OTHER,               /* a send, or of a collective: nothing is counted later, but a trace has its completion */
} eb_request_kind;

typedef struct {
  eb_request_kind kind;
  uint32_t call; /* the number of the call that created it */
  eb_communicator *communicator;
  int peer;       /* world rank, where the request says it */
  int tag;        /* where the request says it and no status does */
  int posted_tag; /* of a persistent receive, whose message may have another one */
  uint64_t posted_bytes;
  uint32_t partitions;
  uint32_t serial; /* see eb_traced; of a persistent one that of the latest start */
  uint32_t what;   /* of EB_REQUEST_OTHER and _COLLECTIVE: eb_traced_what of its completion */
  bool is_active;  /* started and not complete */
  uint64_t posted_ticks; /* when it was posted or started, where a trace is kept */
  union {
    uint64_t bytes;                   /* where the request says it */
    struct eb_persistent *persistent; /* of EB_REQUEST_COLLECTIVE */
  };
  eb_epoch *starter; /* of the thread that started it; set by the functions below */
} eb_request;

/* Which of the requests that have had the same handle. */
typedef uint64_t eb_ticket;
enum { EB_TICKET_NONE = 0 };
#define EB_TICKET_ONLY UINT64_MAX /* without several threads there is only one */

/* The key of a handle; those of messages differ from all requests' (MPICH numbers both alike). */
static inline uint64_t eb_request_key(MPI_Request handle) {
  const uintptr_t bits = (uintptr_t)handle;
  return sizeof(MPI_Request) == 4 ? (uint64_t)(uint32_t)bits : (uint64_t)bits; /* an int keeps its sign otherwise */
}
static inline uint64_t eb_message_key(MPI_Message handle) {
  const uintptr_t bits = (uintptr_t)handle;
  return (sizeof(MPI_Message) == 4 ? (uint64_t)(uint32_t)bits : (uint64_t)bits) | (uint64_t)1 << 63;
}

/* How many are known: with none, completions need not be looked at. */
extern int eb_requests_num;
static inline bool eb_requests_any(void) { return __atomic_load_n(&eb_requests_num, __ATOMIC_RELAXED) != 0; }

/* The program has MPI_THREAD_MULTIPLE or MPI_THREAD_SERIALIZED. */
extern bool eb_requests_are_shared;

/* Those of which nothing is counted later are known, too: because of that, or because a trace is kept. */
extern bool eb_requests_include_others;

/* Before recording begins: finds the handles of requests that are complete when they are started. */
void eb_requests_begin(void);

/* Without memory the request is not counted. */
void eb_requests_add(uint64_t key, const eb_request *request);

/* At MPI_Start. False: not known. */
bool eb_requests_start(uint64_t key, uint64_t now_ticks, eb_request *request);

static inline bool eb_request_is_persistent(const eb_request *request) {
  return request->kind >= EB_REQUEST_PERSISTENT_RECEIVE && request->kind <= EB_REQUEST_COLLECTIVE;
}
static inline bool eb_request_receives(const eb_request *request) {
  return request->kind != EB_REQUEST_PERSISTENT_SEND && request->kind != EB_REQUEST_PARTITIONED_SEND &&
         request->kind != EB_REQUEST_COLLECTIVE && request->kind != EB_REQUEST_OTHER;
}

/* Before a call that may complete an active request. */
eb_ticket eb_requests_ticket(uint64_t key);

/* When it has completed: a persistent one becomes inactive, another one is forgotten. *request is as it was before. False: not
 * known. */
bool eb_requests_complete(uint64_t key, eb_ticket ticket, eb_request *request);

/* Whether a request of this key is known, active or not. */
bool eb_requests_know(uint64_t key);

/* At MPI_Request_free. `is_complete`: its completion has forgotten it unless it is persistent; what else has the key is another
 * request. False: not known. */
bool eb_requests_remove(uint64_t key, bool is_complete, eb_request *request);

#endif
