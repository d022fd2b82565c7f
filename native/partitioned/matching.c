/* Sends, receives and matches control messages. */
#include "partitioned/matching.h"

#include <stdlib.h>

#include "partitioned/channel.h"
#include "partitioned/outbox.h"
#include "partitioned/world.h"

enum { MAX_RELEASES = 32 };

static int num_expected_reports; /* under eb_lock */

static int send_control(eb_shadow *shadow, int peer, int what, const void *bytes, size_t num_bytes) {
  return eb_outbox_send(EB_LETTER_CONTROL, bytes, num_bytes, peer, eb_tags_control(&shadow->tags, what), shadow->comm);
}

int eb_matching_announce(eb_shadow *shadow, int peer, const eb_setup *setup) {
  eb_lock();
  shadow->num_owed++; /* the release */
  eb_unlock();
  return send_control(shadow, peer, EB_CONTROL_SETUP, setup, sizeof *setup);
}

/* One control message of a kind, from anybody, of at most *num_bytes; false when there is none. */
static bool take(eb_shadow *shadow, int what, void *bytes, int *num_bytes, int *source) {
  MPI_Message message;
  MPI_Status status;
  int found = 0;
  if (PMPI_Improbe(MPI_ANY_SOURCE, eb_tags_control(&shadow->tags, what), shadow->comm, &found, &message, &status) !=
          MPI_SUCCESS || !found)
    return false;
  *source = status.MPI_SOURCE;
  return PMPI_Mrecv(bytes, *num_bytes, MPI_BYTE, &message, &status) == MPI_SUCCESS &&
         PMPI_Get_count(&status, MPI_BYTE, num_bytes) == MPI_SUCCESS;
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
  int source, num_bytes = sizeof come;
  eb_lock();
  shadow->references++; /* the release of a receiver that was freed unmatched may drop the last one */
  while (take(shadow, EB_CONTROL_SETUP, &come, &num_bytes, &source)) {
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
    eb_shadow *const next = shadow->next; /* read before: letting go may free the shadow */
    shadow->references++;
    if (shadow->expecting) eb_matching_progress(shadow);
    if (shadow->num_owed > 0) eb_matching_collect(shadow);
    eb_shadow_release(shadow);
    shadow = next;
  }
  eb_unlock();
}

/* Ids that one peer is to be told of. */
typedef struct eb_unreleased {
  int num;
  int64_t num_ids; /* of all of them */
  int64_t first_id[MAX_RELEASES];
} eb_unreleased;

static int tell_released(eb_shadow *shadow, int peer) {
  eb_unreleased *of_peer = shadow->unreleased[peer];
  const size_t num_bytes = (size_t)of_peer->num * sizeof of_peer->first_id[0];
  of_peer->num = 0;
  of_peer->num_ids = 0;
  return send_control(shadow, peer, EB_CONTROL_RELEASE, of_peer->first_id, num_bytes);
}

/* A message for each could be too many for a peer that does not look at them (see waiting.c); but at most a quarter of
 * the ids should be out of use. */
static bool is_to_be_told(const eb_shadow *shadow, const eb_unreleased *of_peer) {
  return shadow->num_users == 0 || of_peer->num == MAX_RELEASES ||
         of_peer->num_ids >= eb_tags_num_ids(&shadow->tags) / 4 / shadow->size;
}

int eb_matching_release(eb_shadow *shadow, int peer, int64_t first_id, int64_t num_ids) {
  int rc = MPI_SUCCESS;
  eb_lock();
  if (!shadow->unreleased) shadow->unreleased = calloc((size_t)shadow->size, sizeof *shadow->unreleased);
  if (shadow->unreleased && !shadow->unreleased[peer]) shadow->unreleased[peer] = calloc(1, sizeof(eb_unreleased));
  if (shadow->unreleased && shadow->unreleased[peer]) {
    eb_unreleased *of_peer = shadow->unreleased[peer];
    of_peer->first_id[of_peer->num++] = first_id;
    of_peer->num_ids += num_ids;
    if (is_to_be_told(shadow, of_peer)) rc = tell_released(shadow, peer);
  } else {
    rc = send_control(shadow, peer, EB_CONTROL_RELEASE, &first_id, sizeof first_id);
  }
  eb_unlock();
  return rc;
}

int eb_matching_flush_releases(eb_shadow *shadow) {
  int rc = MPI_SUCCESS;
  eb_lock();
  for (int peer = 0; rc == MPI_SUCCESS && shadow->unreleased && peer < shadow->size; peer++)
    if (shadow->unreleased[peer] && shadow->unreleased[peer]->num > 0) rc = tell_released(shadow, peer);
  eb_unlock();
  return rc;
}

static void drop_report(eb_expected_report *expected) {
  *expected->at = expected->next;
  if (expected->next) expected->next->at = expected->at;
  num_expected_reports--;
  free(expected);
}

static bool has_come(eb_expected_report *expected) {
  int flag = 0;
  /* A receive that failed has come to its end, too; its report is of no start. */
  return PMPI_Test(&expected->request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag;
}

void eb_matching_collect(eb_shadow *shadow) {
  int64_t first_id[MAX_RELEASES];
  int source, num_bytes = sizeof first_id;
  eb_lock();
  while (shadow->num_owed > 0 && take(shadow, EB_CONTROL_RELEASE, first_id, &num_bytes, &source)) {
    const int num = num_bytes / (int)sizeof first_id[0];
    for (int r = 0; r < num; r++) eb_ids_release(&shadow->ids, first_id[r]);
    shadow->num_owed -= num;
    num_bytes = sizeof first_id;
  }
  for (eb_expected_report *expected = shadow->reports; expected;) {
    eb_expected_report *const next = expected->next;
    if (!expected->is_wanted && has_come(expected)) {
      shadow->num_owed--;
      drop_report(expected);
    }
    expected = next;
  }
  eb_unlock();
}

int eb_matching_expect_report(eb_shadow *shadow, int peer, int tag, eb_expected_report **made) {
  eb_expected_report *expected = calloc(1, sizeof *expected);
  if (!expected) return MPI_ERR_NO_MEM;
  const int rc = PMPI_Irecv(&expected->report, sizeof expected->report, MPI_BYTE, peer, tag, shadow->comm, &expected->request);
  if (rc != MPI_SUCCESS) {
    free(expected);
    return rc;
  }
  expected->is_wanted = true;
  eb_lock();
  expected->next = shadow->reports;
  expected->at = &shadow->reports;
  if (expected->next) expected->next->at = &expected->next;
  shadow->reports = expected;
  shadow->num_owed++;
  num_expected_reports++;
  eb_unlock();
  *made = expected;
  return MPI_SUCCESS;
}

bool eb_matching_take_report(eb_shadow *shadow, eb_expected_report **expected, eb_report *report) {
  bool come = false;
  if (!*expected) return false;
  eb_lock();
  if (has_come(*expected)) {
    come = true;
    *report = (*expected)->report;
    shadow->num_owed--;
    drop_report(*expected);
  } else {
    (*expected)->is_wanted = false; /* it stays posted, because it will come */
  }
  eb_unlock();
  *expected = NULL;
  return come;
}

int eb_matching_num_expected_reports(void) { return num_expected_reports; }

void eb_matching_abandon_reports(void) {
  eb_lock();
  for (eb_shadow *shadow = eb_shadows(); shadow; shadow = shadow->next)
    for (eb_expected_report *expected = shadow->reports; expected; expected = expected->next) expected->is_wanted = false;
  eb_unlock();
}

void eb_matching_cancel_reports(void) {
  eb_lock();
  for (eb_shadow *shadow = eb_shadows(); shadow; shadow = shadow->next) {
    while (shadow->reports) {
      PMPI_Cancel(&shadow->reports->request);
      PMPI_Wait(&shadow->reports->request, MPI_STATUS_IGNORE);
      drop_report(shadow->reports);
    }
  }
  eb_unlock();
}

void eb_matching_forget(eb_shadow *shadow) {
  for (int peer = 0; shadow->unreleased && peer < shadow->size; peer++) free(shadow->unreleased[peer]);
  free(shadow->unreleased);
  while (shadow->setups) {
    eb_setup *next = shadow->setups->next;
    free(shadow->setups);
    shadow->setups = next;
  }
}
