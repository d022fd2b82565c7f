/* Persistent collectives: what one moves is found out when it is created, and counted at every start. */
#ifndef EB_RECORDED_PERSISTENT_H
#define EB_RECORDED_PERSISTENT_H

#include "recorder/recording/recorder.h"

typedef struct eb_persistent eb_persistent;

/* Until the end, the thread's collectives and blocks are added to one description instead of its table. */
void eb_persistent_begin(const eb_span *span);

/* The call that created the request over the communicator is counted, and the description kept until eb_persistent_free. */
void eb_persistent_end(const eb_span *span, unsigned call, eb_communicator *communicator, const MPI_Request *request);

/* EB_ROLE_STARTED, or a block of the collective. */
void eb_persistent_add(eb_persistent *persistent, eb_role role, const eb_communicator *communicator, int peer, uint64_t bytes);

/* Counts a start of the request, for which others wait then. */
void eb_persistent_started(const eb_span *span, MPI_Request handle, const eb_request *request);

void eb_persistent_free(eb_persistent *persistent);

#endif
