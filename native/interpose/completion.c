/* MPI_Wait, MPI_Test and their variants, for arrays that mix requests of the library and of the MPI.
 *
 * To the MPI a handle of ours is an inactive persistent request, which all these calls pass over. So they are given
 * the user's whole array, and our part is added to what they found. While requests of ours exist, pointers
 * that are NULL are reported here, before anything of ours is changed: MPICH's functions for the standard's ABI do not
 * check them.
 */
#include <sched.h>

#include "interpose/complete.h"
#include "interpose/interpose.h"

/* NULL for a status, where that is not MPI_STATUS_IGNORE. */
static bool is_missing(const MPI_Status *status) { return status == NULL && MPI_STATUS_IGNORE != NULL; }

/* NULL for an array of so many requests, or statuses, or for what a call writes to. */
static bool lacks(int count, const MPI_Request *requests, const MPI_Status *statuses, const int *output) {
  return !output || (count > 0 && (!requests || is_missing(statuses)));
}

/* The view is that of the request, if there is one. */
static int refuse_null(const eb_view *view) {
  return eb_raise(view, MPI_ERR_ARG, "a call that tests or completes requests was given NULL for what it reads or writes");
}

static MPI_Status *status_at(MPI_Status *statuses, int index) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[index];
}

/* After a test or wait has found it done, or failed with a code. */
static int finish(eb_channel *channel, int rc, MPI_Status *status) {
  return rc == MPI_SUCCESS ? eb_channel_finish(channel, status) : eb_channel_fail(channel, rc);
}

EB_APART static int wait_one(MPI_Request *request, MPI_Status *status) {
  eb_channel *channel = eb_at(request);
  if (!channel) return PMPI_Wait(request, status);
  if (is_missing(status)) return refuse_null(channel->view);
  if (!channel->is_active) {
    eb_status_empty(status);
    return MPI_SUCCESS;
  }
  const int rc = finish(channel, eb_channel_wait(channel), status);
  return rc == MPI_SUCCESS ? rc : eb_raise_for(channel, rc);
}

EB_EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status) {
  return eb_none_live() ? PMPI_Wait(request, status) : wait_one(request, status);
}

/* Tests one of ours. True when it is done (or failed: see *rc) and finished. */
static bool poll_one(eb_channel *channel, MPI_Status *status, int *rc) {
  bool done;
  *rc = eb_channel_test(channel, &done);
  if (*rc == MPI_SUCCESS && !done) return false;
  *rc = finish(channel, *rc, status);
  return true;
}

EB_APART static int test_one(MPI_Request *request, int *flag, MPI_Status *status) {
  eb_channel *channel = eb_at(request);
  if (!channel) return PMPI_Test(request, flag, status);
  if (!flag || is_missing(status)) return refuse_null(channel->view);
  int rc = MPI_SUCCESS;
  *flag = 1;
  if (!channel->is_active) eb_status_empty(status);
  else *flag = poll_one(channel, status, &rc);
  return rc == MPI_SUCCESS ? rc : eb_raise_for(channel, rc);
}

EB_EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
  return eb_none_live() ? PMPI_Test(request, flag, status) : test_one(request, flag, status);
}

/* Which requests of an array are ours. */
typedef struct {
  int num; /* active or not */
  eb_channel *failed; /* the first */
  int rc;             /* its error */
} own_requests;

/* Finishes all of ours that are active, waiting if `waits`. If there are statuses, they are filled later, because the MPI's own
 * call writes them too. */
static own_requests finish_all(int count, const MPI_Request *requests, bool waits, bool has_statuses) {
  own_requests own = {0, NULL, MPI_SUCCESS};
  for (int r = 0; r < count; r++) {
    eb_channel *channel = eb_channel_find(requests[r]);
    if (!channel) continue;
    own.num++;
    if (!channel->is_active) continue;
    const int rc = finish(channel, waits ? eb_channel_wait(channel) : MPI_SUCCESS, MPI_STATUS_IGNORE);
    channel->is_status_pending = has_statuses;
    channel->pending_code = rc;
    if (rc != MPI_SUCCESS && !own.failed) {
      own.failed = channel;
      own.rc = rc;
    }
  }
  return own;
}

static void fill_statuses(int count, const MPI_Request *requests, MPI_Status *statuses, const eb_channel *failed) {
  if (statuses == MPI_STATUSES_IGNORE) return;
  for (int r = 0; r < count; r++) {
    eb_channel *channel = eb_channel_find(requests[r]);
    if (!channel || !channel->is_status_pending) continue;
    channel->is_status_pending = false;
    eb_channel_fill_status(channel, &statuses[r]);
    if (failed) statuses[r].MPI_ERROR = channel->pending_code;
  }
}

/* What a call for several requests returns: MPI_ERR_IN_STATUS if there are statuses. */
static int many_failed(eb_channel *failed, int rc, const MPI_Status *statuses) {
  if (statuses == MPI_STATUSES_IGNORE) return eb_raise_for(failed, rc);
  return eb_raise_code(failed->view, MPI_ERR_IN_STATUS);
}

EB_APART static int wait_all(int count, MPI_Request requests[], MPI_Status statuses[]) {
  if (lacks(count, requests, statuses, &count)) return refuse_null(NULL);
  const bool has_statuses = statuses != MPI_STATUSES_IGNORE;
  const own_requests own = finish_all(count, requests, true, has_statuses);
  int rc = MPI_SUCCESS;
  if (own.num == 0 || own.num < count || has_statuses) rc = PMPI_Waitall(count, requests, statuses);
  for (int r = 0; own.failed && rc == MPI_SUCCESS && has_statuses && r < count; r++) statuses[r].MPI_ERROR = MPI_SUCCESS;
  if (own.num > 0) fill_statuses(count, requests, statuses, own.failed);
  return own.failed ? many_failed(own.failed, own.rc, statuses) : rc;
}

EB_EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  return eb_none_live() ? PMPI_Waitall(count, requests, statuses) : wait_all(count, requests, statuses);
}

EB_APART static int test_all(int count, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
  if (lacks(count, requests, statuses, flag)) return refuse_null(NULL);
  if (!eb_any_ours(count, requests)) return PMPI_Testall(count, requests, flag, statuses);
  *flag = 0;
  for (int r = 0; r < count; r++) {
    eb_channel *channel = eb_channel_find(requests[r]);
    bool done = true;
    if (!channel || !channel->is_active) continue;
    /* Only a test: no request may be deactivated before all are done. */
    const int rc = eb_channel_test(channel, &done);
    if (rc != MPI_SUCCESS) {
      eb_channel_fail(channel, rc);
      for (int s = 0; statuses != MPI_STATUSES_IGNORE && s < count; s++) statuses[s].MPI_ERROR = s == r ? rc : MPI_ERR_PENDING;
      return many_failed(channel, rc, statuses);
    }
    if (!done) return MPI_SUCCESS;
  }
  const int rc = PMPI_Testall(count, requests, flag, statuses);
  if (rc != MPI_SUCCESS || !*flag) return rc;
  const own_requests own = finish_all(count, requests, false, statuses != MPI_STATUSES_IGNORE);
  fill_statuses(count, requests, statuses, own.failed);
  return own.failed ? many_failed(own.failed, own.rc, statuses) : MPI_SUCCESS;
}

EB_EXPORT int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
  return eb_none_live() ? PMPI_Testall(count, requests, flag, statuses) : test_all(count, requests, flag, statuses);
}

/* The first of ours that is done, finished; MPI_UNDEFINED when none is. *any: at least one is active. */
static int poll_any(int count, const MPI_Request *requests, MPI_Status *status, bool *any, int *rc) {
  *any = false;
  *rc = MPI_SUCCESS;
  for (int r = 0; r < count; r++) {
    eb_channel *channel = eb_channel_find(requests[r]);
    if (!channel || !channel->is_active) continue;
    *any = true;
    if (!poll_one(channel, status, rc)) continue;
    if (*rc != MPI_SUCCESS) *rc = eb_raise_for(channel, *rc);
    return r;
  }
  return MPI_UNDEFINED;
}

EB_APART static int test_any(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
  if (lacks(count, requests, status, flag) || !index) return refuse_null(NULL);
  if (!eb_any_ours(count, requests)) return PMPI_Testany(count, requests, index, flag, status);
  bool any;
  int rc;
  const int ours = poll_any(count, requests, status, &any, &rc);
  if (ours != MPI_UNDEFINED) {
    *index = ours;
    *flag = 1;
    return rc;
  }
  rc = PMPI_Testany(count, requests, index, flag, status);
  /* To the MPI there may be no active request, which it reports as done. */
  if (rc == MPI_SUCCESS && *flag && *index == MPI_UNDEFINED && any) *flag = 0;
  return rc;
}

EB_EXPORT int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
  return eb_none_live() ? PMPI_Testany(count, requests, index, flag, status) : test_any(count, requests, index, flag, status);
}

/* Yields the core from time to time: the awaited sender may need it. */
static void pause_polling(unsigned *round) {
  if (++*round % 64 == 0) sched_yield();
}

EB_APART static int wait_any(int count, MPI_Request requests[], int *index, MPI_Status *status) {
  if (lacks(count, requests, status, index)) return refuse_null(NULL);
  if (!eb_any_ours(count, requests)) return PMPI_Waitany(count, requests, index, status);
  for (unsigned round = 0;; pause_polling(&round)) {
    int flag;
    const int rc = test_any(count, requests, index, &flag, status);
    if (rc != MPI_SUCCESS || flag) return rc;
  }
}

EB_EXPORT int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status) {
  return eb_none_live() ? PMPI_Waitany(count, requests, index, status) : wait_any(count, requests, index, status);
}

EB_APART static int test_some(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]) {
  if (lacks(incount, requests, statuses, outcount) || (incount > 0 && !indices)) return refuse_null(NULL);
  if (!eb_any_ours(incount, requests)) return PMPI_Testsome(incount, requests, outcount, indices, statuses);
  int rc = PMPI_Testsome(incount, requests, outcount, indices, statuses);
  if (rc != MPI_SUCCESS) return rc;
  int num = *outcount == MPI_UNDEFINED ? 0 : *outcount;
  bool any = *outcount != MPI_UNDEFINED;
  for (int r = 0; r < incount; r++) {
    eb_channel *channel = eb_channel_find(requests[r]);
    if (!channel || !channel->is_active) continue;
    any = true;
    if (!poll_one(channel, status_at(statuses, num), &rc)) continue;
    indices[num++] = r;
    if (rc == MPI_SUCCESS) continue;
    for (int s = 0; statuses != MPI_STATUSES_IGNORE && s < num; s++) statuses[s].MPI_ERROR = s == num - 1 ? rc : MPI_SUCCESS;
    *outcount = num;
    return many_failed(channel, rc, statuses);
  }
  *outcount = any ? num : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

EB_EXPORT int MPI_Testsome(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]) {
  return eb_none_live() ? PMPI_Testsome(incount, requests, outcount, indices, statuses)
                        : test_some(incount, requests, outcount, indices, statuses);
}

EB_APART static int wait_some(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]) {
  if (lacks(incount, requests, statuses, outcount) || (incount > 0 && !indices)) return refuse_null(NULL);
  if (!eb_any_ours(incount, requests)) return PMPI_Waitsome(incount, requests, outcount, indices, statuses);
  for (unsigned round = 0;; pause_polling(&round)) {
    const int rc = test_some(incount, requests, outcount, indices, statuses);
    if (rc != MPI_SUCCESS || *outcount != 0) return rc;
  }
}

EB_EXPORT int MPI_Waitsome(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]) {
  return eb_none_live() ? PMPI_Waitsome(incount, requests, outcount, indices, statuses)
                        : wait_some(incount, requests, outcount, indices, statuses);
}

EB_APART static int get_status(MPI_Request request, int *flag, MPI_Status *status) {
  eb_channel *channel = eb_ours(request);
  if (!channel) return PMPI_Request_get_status(request, flag, status);
  if (!flag || is_missing(status)) return refuse_null(channel->view);
  bool done = true;
  int rc = channel->is_active ? eb_channel_test(channel, &done) : MPI_SUCCESS;
  if (rc == MPI_SUCCESS && done && channel->is_active) rc = eb_channel_deliver(channel);
  if (rc != MPI_SUCCESS) return eb_raise_for(channel, rc);
  *flag = done;
  if (done && channel->is_active) eb_channel_fill_status(channel, status);
  else if (done) eb_status_empty(status);
  return MPI_SUCCESS;
}

EB_EXPORT int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status) {
  return eb_none_live() ? PMPI_Request_get_status(request, flag, status) : get_status(request, flag, status);
}

#ifdef EB_HAS_REQUEST_GET_STATUS_ALL
/* Under names of our own, because headers differ in a const of their arrays. */
#define AS(name) __asm__(#name)
EB_EXPORT int eb_get_status_all(int count, const MPI_Request *requests, int *flag, MPI_Status *statuses)
    AS(MPI_Request_get_status_all);
EB_EXPORT int eb_get_status_any(int count, const MPI_Request *requests, int *index, int *flag, MPI_Status *status)
    AS(MPI_Request_get_status_any);
EB_EXPORT int eb_get_status_some(int incount, const MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses)
    AS(MPI_Request_get_status_some);

EB_EXPORT int eb_get_status_all(int count, const MPI_Request *requests, int *flag, MPI_Status *statuses) {
  if (!eb_none_live() && lacks(count, requests, statuses, flag)) return refuse_null(NULL);
  if (!eb_any_ours(count, requests)) return PMPI_Request_get_status_all(count, (MPI_Request *)requests, flag, statuses);
  for (int r = 0; r < count; r++) {
    const int rc = get_status(requests[r], flag, status_at(statuses, r));
    if (rc != MPI_SUCCESS || !*flag) return rc;
  }
  *flag = 1;
  return MPI_SUCCESS;
}

/* MPI 4.1 section 3.7.5: null and inactive requests are passed over, unless there are no others. */
static bool is_idle(MPI_Request request) {
  eb_channel *channel = eb_ours(request);
  return request == MPI_REQUEST_NULL || (channel && !channel->is_active);
}

EB_EXPORT int eb_get_status_any(int count, const MPI_Request *requests, int *index, int *flag, MPI_Status *status) {
  if (!eb_none_live() && (lacks(count, requests, status, flag) || !index)) return refuse_null(NULL);
  if (!eb_any_ours(count, requests)) return PMPI_Request_get_status_any(count, (MPI_Request *)requests, index, flag, status);
  bool any = false;
  for (int r = 0; r < count; r++) {
    eb_channel *channel = eb_ours(requests[r]);
    if (!channel || is_idle(requests[r])) continue;
    any = true;
    const int rc = get_status(requests[r], flag, status);
    if (rc == MPI_SUCCESS && !*flag) continue;
    *index = r;
    return rc;
  }
  const int rc = PMPI_Request_get_status_any(count, (MPI_Request *)requests, index, flag, status);
  if (rc == MPI_SUCCESS && *flag && *index == MPI_UNDEFINED && any) *flag = 0;
  return rc;
}

EB_EXPORT int eb_get_status_some(int incount, const MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses) {
  if (!eb_none_live() && (lacks(incount, requests, statuses, outcount) || (incount > 0 && !indices))) return refuse_null(NULL);
  if (!eb_any_ours(incount, requests))
    return PMPI_Request_get_status_some(incount, (MPI_Request *)requests, outcount, indices, statuses);
  int rc = PMPI_Request_get_status_some(incount, (MPI_Request *)requests, outcount, indices, statuses);
  if (rc != MPI_SUCCESS) return rc;
  bool any = *outcount != MPI_UNDEFINED;
  int num = any ? *outcount : 0;
  for (int r = 0; r < incount; r++) {
    eb_channel *channel = eb_ours(requests[r]);
    if (!channel || is_idle(requests[r])) continue;
    any = true;
    int flag;
    rc = get_status(requests[r], &flag, status_at(statuses, num));
    if (rc != MPI_SUCCESS) return rc;
    if (flag) indices[num++] = r;
  }
  *outcount = any ? num : MPI_UNDEFINED;
  return MPI_SUCCESS;
}
#endif
