/* A channel: one side of a partitioned transfer, from MPI_Psend_init or MPI_Precv_init until its request is freed.
 *
 * It is composed of parts, each with an interface of its own. The members of a part are used only by the part's own files;
 * those of the transfer are constant and may be read anywhere. channel.h has the functions on a channel as a whole. */
#ifndef EB_PARTS_H
#define EB_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/adaptation/adaptation.h"
#include "partitioned/channel/requests.h"
#include "partitioned/domain/communicator.h"
#include "partitioned/domain/transfer.h"
#include "partitioned/matching/matching.h"
#include "partitioned/statistics/statistics.h"
#include "partitioned/wire/buffer.h"
#include "partitioned/wire/tracking.h"
#include "partitioned/wire/wire.h"

typedef struct eb_channel {
  eb_entry entry; /* first: the table of handles finds the channel by it */
  eb_view *view;  /* of the communicator */
  struct eb_channel *next_unused;
  uint64_t num_starts;
  atomic_bool is_active; /* MPI_Parrived may ask while another thread completes the request */
  atomic_bool is_deferred; /* a receiver was started before its setup arrived */
  bool is_status_pending;  /* a completion call has finished it and must still fill its status */
  int pending_code;        /* with this code */

  eb_transfer transfer;
  eb_match match;
  eb_buffer buffer;
  eb_tracking tracking;
  eb_wire wire;
  eb_adaptation adaptation;
  eb_statistics statistics;

  atomic_bool is_asked; /* a thread has asked for a partition while another one waits */
  atomic_flag testing;  /* one thread at a time asks the MPI about a channel's segments: MPI_Parrived and the status of a request
                         * may be asked for while another thread waits */
} eb_channel;

#endif
