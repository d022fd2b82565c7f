/* Sends, receives and matches setup messages, and carries released channel ids back. */
#include "partitioned/matching.h"

#include <stdlib.h>

#include "partitioned/channel.h"
#include "partitioned/outbox.h"
#include "partitioned/world.h"

int eb_num_deferred;

/* Counts what it sends, so that the end of the shadow can wait for all of it. */
static int send_control(eb_shadow *shadow, int peer, int what, const void *bytes, size_t num_bytes) {
  eb_lock();
  int size, rc = MPI_SUCCESS;
  if (!shadow->num_sent && (rc = PMPI_Comm_size(shadow->comm, &size)) == MPI_SUCCESS) {
    shadow->num_sent = calloc((size_t)size, sizeof *shadow->num_sent);
    if (!shadow->num_sent) rc = MPI_ERR_NO_MEM;
  }
  if (rc == MPI_SUCCESS) rc = eb_outbox_send(bytes, num_bytes, peer, eb_tags_control(&shadow->tags, what), shadow->comm);
  if (rc == MPI_SUCCESS) shadow->num_sent[peer]++;
  eb_unlock();
  return rc;
}

int eb_matching_announce(eb_shadow *shadow, int peer, const eb_setup *setup) {
  return send_control(shadow, peer, EB_CONTROL_SETUP, setup, sizeof *setup);
}

/* One control message of a kind, from anybody; false when there is none. */
static bool take(eb_shadow *shadow, int what, void *bytes, int num_bytes, int *source) {
  MPI_Message message;
  MPI_Status status;
  int found = 0;
  if (PMPI_Improbe(MPI_ANY_SOURCE, eb_tags_control(&shadow->tags, what), shadow->comm, &found, &message, &status) !=
          MPI_SUCCESS || !found)
    return false;
  *source = status.MPI_SOURCE;
  shadow->num_taken++;
  return PMPI_Mrecv(bytes, num_bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

static bool belongs(const eb_setup *setup, const eb_channel *channel) {
  return setup->source == channel->peer && setup->tag == channel->tag && setup->context == channel->view->context;
}

/* Takes the channel at *at out of the list of those that expect. */
static eb_channel *unlink_expecting(eb_shadow *shadow, eb_channel **at) {
  eb_channel *channel = *at;
  *at = channel->next_expecting;
  if (!*at) shadow->last_expecting = at;
  return channel;
}

void eb_matching_expect(eb_channel *channel) {
  eb_shadow *shadow = channel->view->shadow;
  eb_lock();
  eb_matching_progress(shadow);
  for (eb_setup **at = &shadow->setups; *at; at = &(*at)->next) {
    eb_setup *setup = *at;
    if (!belongs(setup, channel)) continue;
    *at = setup->next;
    if (!*at) shadow->last_setup = at;
    eb_channel_take_setup(channel, setup);
    free(setup);
    eb_unlock();
    return;
  }
  channel->next_expecting = NULL;
  *shadow->last_expecting = channel;
  shadow->last_expecting = &channel->next_expecting;
  eb_unlock();
}

void eb_matching_progress(eb_shadow *shadow) {
  eb_setup come;
  int source;
  eb_lock();
  shadow->references++; /* the release of a receiver that was freed unmatched may drop the last one */
  while (take(shadow, EB_CONTROL_SETUP, &come, sizeof come, &source)) {
    come.source = source;
    eb_channel **at = &shadow->expecting;
    while (*at && !belongs(&come, *at)) at = &(*at)->next_expecting;
    if (*at) {
      eb_channel_take_setup(unlink_expecting(shadow, at), &come);
      continue;
    }
    eb_setup *kept = malloc(sizeof *kept);
    if (!kept) PMPI_Abort(shadow->comm, 1); /* a lost setup would hang the job without a word */
    *kept = come;
    kept->next = NULL;
    *shadow->last_setup = kept;
    shadow->last_setup = &kept->next;
  }
  eb_shadow_release(shadow);
  eb_unlock();
}

void eb_matching_progress_all(void) {
  eb_lock();
  for (eb_shadow *shadow = eb_shadows(); shadow;) {
    eb_shadow *const next = shadow->next; /* read before: progress may free the shadow */
    if (shadow->expecting) eb_matching_progress(shadow);
    shadow = next;
  }
  eb_unlock();
}

int eb_matching_release(eb_shadow *shadow, int peer, int64_t first_id) {
  return send_control(shadow, peer, EB_CONTROL_RELEASE, &first_id, sizeof first_id);
}

void eb_matching_collect_releases(eb_shadow *shadow) {
  int64_t first_id;
  int source;
  eb_lock();
  while (take(shadow, EB_CONTROL_RELEASE, &first_id, sizeof first_id, &source)) eb_ids_release(&shadow->ids, first_id);
  eb_unlock();
}

void eb_matching_forget(eb_shadow *shadow) {
  while (shadow->setups) {
    eb_setup *next = shadow->setups->next;
    free(shadow->setups);
    shadow->setups = next;
  }
}

void eb_matching_drop(eb_shadow *shadow) {
  eb_setup setup;
  int64_t first_id;
  int source;
  while (take(shadow, EB_CONTROL_SETUP, &setup, sizeof setup, &source)) continue;
  while (take(shadow, EB_CONTROL_RELEASE, &first_id, sizeof first_id, &source)) continue;
}
