/* Sends, receives and matches control messages. */
#include "partitioned/matching.h"

#include <stdlib.h>

#include "partitioned/channel.h"
#include "partitioned/outbox.h"
#include "partitioned/world.h"

#define MAX_REPORTS 256

static int send_control(eb_shadow *shadow, int peer, int what, const void *bytes, size_t num_bytes) {
  return eb_outbox_send(EB_LETTER_CONTROL, bytes, num_bytes, peer, eb_tags_control(&shadow->tags, what), shadow->comm);
}

int eb_matching_announce(eb_shadow *shadow, int peer, const eb_setup *setup) {
  eb_lock();
  shadow->num_owed++; /* the release */
  eb_unlock();
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
  shadow->num_expecting--;
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
  shadow->num_expecting++;
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
    else if (shadow->num_owed > 0) eb_matching_collect(shadow);
    shadow = next;
  }
  eb_unlock();
}

int eb_matching_release(eb_shadow *shadow, int peer, int64_t first_id) {
  return send_control(shadow, peer, EB_CONTROL_RELEASE, &first_id, sizeof first_id);
}

int eb_matching_report(eb_shadow *shadow, int peer, const eb_report *report) {
  return send_control(shadow, peer, EB_CONTROL_REPORT, report, sizeof *report);
}

void eb_matching_collect(eb_shadow *shadow) {
  int64_t first_id;
  eb_report come;
  int source;
  eb_lock();
  while (shadow->num_owed > 0 && take(shadow, EB_CONTROL_RELEASE, &first_id, sizeof first_id, &source)) {
    eb_ids_release(&shadow->ids, first_id);
    shadow->num_owed--;
  }
  while (shadow->num_owed > 0 && take(shadow, EB_CONTROL_REPORT, &come, sizeof come, &source)) {
    shadow->num_owed--;
    shadow->num_reports_owed--;
    eb_report *kept = malloc(sizeof *kept);
    if (!kept) continue; /* a plan is judged later, nothing more */
    *kept = come;
    kept->source = source;
    kept->next = shadow->reports;
    shadow->reports = kept;
  }
  /* Reports of senders that were freed meanwhile are never asked for: the newest are kept. */
  eb_report **at = &shadow->reports;
  for (int num = 0; *at && num < MAX_REPORTS; num++) at = &(*at)->next;
  while (*at) {
    eb_report *oldest = *at;
    *at = oldest->next;
    free(oldest);
  }
  eb_unlock();
}

bool eb_matching_take_report(eb_shadow *shadow, int peer, int base, eb_report *report) {
  bool found = false;
  eb_lock();
  eb_matching_collect(shadow);
  for (eb_report **at = &shadow->reports; *at;) {
    eb_report *here = *at;
    if (here->source != peer || here->base != base) {
      at = &here->next;
      continue;
    }
    if (!found) *report = *here;
    found = true;
    *at = here->next;
    free(here);
  }
  eb_unlock();
  return found;
}

void eb_matching_forget(eb_shadow *shadow) {
  while (shadow->setups) {
    eb_setup *next = shadow->setups->next;
    free(shadow->setups);
    shadow->setups = next;
  }
  while (shadow->reports) {
    eb_report *next = shadow->reports->next;
    free(shadow->reports);
    shadow->reports = next;
  }
}
