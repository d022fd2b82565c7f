/* Partitioned requests among ordinary, persistent, null and inactive ones in every completion call; statuses. */
#include <stdlib.h>
#include <string.h>

#include "case.h"

enum { NUM_REQUESTS = 8, TAG = 31 };

/* Two partitioned pairs, an ordinary pair, a persistent pair: NUM_REQUESTS around the ring. */
struct mixture {
  struct side sends[2], receives[2];
  MPI_Request persistent[2];
  int sent, received, persistent_sent, persistent_received;
  int next, before, rank;
  MPI_Comm comm;
};

/* The place of each in the array that is handed to the MPI. */
enum {
  SEND_0,
  NULL_0,
  RECEIVE_0,
  ORDINARY_RECEIVE,
  ORDINARY_SEND,
  RECEIVE_1,
  PERSISTENT_RECEIVE,
  INACTIVE,
  PERSISTENT_SEND,
  SEND_1,
  IDLE_PARTITIONED,
  LENGTH
};

static void mixture_create(struct mixture *m, const struct context *context) {
  m->comm = context->world;
  m->rank = context->rank;
  m->next = (context->rank + 1) % context->num_ranks;
  m->before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  for (int c = 0; c < 2; c++) {
    side_send_init(&m->sends[c], (struct shape){4, 300, MPI_BYTE}, m->next, TAG + 30000 * c, m->comm);
    side_recv_init(&m->receives[c], (struct shape){3, 400, MPI_BYTE}, m->before, TAG + 30000 * c, m->comm);
  }
  MPI(MPI_Send_init(&m->persistent_sent, 1, MPI_INT, m->next, TAG + 1, m->comm, &m->persistent[0]));
  MPI(MPI_Recv_init(&m->persistent_received, 1, MPI_INT, m->before, TAG + 1, m->comm, &m->persistent[1]));
}

/* Starts all; the requests stand in `array` at the places above, with null and inactive ones between them. */
static void mixture_start(struct mixture *m, uint64_t i, MPI_Request *array, MPI_Request *idle) {
  m->sent = 1000 * m->rank + (int)i;
  m->persistent_sent = 7777 * m->rank + (int)i;
  m->received = m->persistent_received = -1;
  for (int c = 0; c < 2; c++) {
    side_prepare(&m->sends[c], i, (uint64_t)(2 * m->rank + c));
    side_prepare(&m->receives[c], i, 0);
  }
  MPI_Request started[6] = {m->receives[1].request, m->persistent[0],    m->sends[1].request,
                            m->receives[0].request, m->sends[0].request, m->persistent[1]};
  MPI(MPI_Startall(6, started));
  EXPECT(started[0] == m->receives[1].request && started[4] == m->sends[0].request, "MPI_Startall changed a handle");
  MPI(MPI_Irecv(&m->received, 1, MPI_INT, m->before, TAG, m->comm, &array[ORDINARY_RECEIVE]));
  MPI(MPI_Isend(&m->sent, 1, MPI_INT, m->next, TAG, m->comm, &array[ORDINARY_SEND]));
  array[NULL_0] = MPI_REQUEST_NULL;
  array[INACTIVE] = idle[0];
  array[IDLE_PARTITIONED] = idle[1];
  array[SEND_0] = m->sends[0].request;
  array[SEND_1] = m->sends[1].request;
  array[RECEIVE_0] = m->receives[0].request;
  array[RECEIVE_1] = m->receives[1].request;
  array[PERSISTENT_SEND] = m->persistent[0];
  array[PERSISTENT_RECEIVE] = m->persistent[1];
}

static void check_status(const struct mixture *m, int place, const MPI_Status *status) {
  int bytes = -1;
  MPI_Count elements = -1;
  MPI(MPI_Get_count(status, MPI_BYTE, &bytes));
  MPI(MPI_Get_elements_x(status, MPI_BYTE, &elements));
  int tag = -1;
  if (place == RECEIVE_0) tag = TAG;
  if (place == RECEIVE_1) tag = TAG + 30000;
  if (tag >= 0)
    EXPECT(status->MPI_SOURCE == m->before && status->MPI_TAG == tag && bytes == 1200 && elements == 1200,
           "a receive's status has source %d, tag %d, %d bytes, %d elements", status->MPI_SOURCE, status->MPI_TAG, bytes,
           (int)elements);
  if (place == ORDINARY_RECEIVE)
    EXPECT(status->MPI_SOURCE == m->before && status->MPI_TAG == TAG && bytes == (int)sizeof(int),
           "an ordinary receive's status has source %d, tag %d, %d bytes", status->MPI_SOURCE, status->MPI_TAG, bytes);
  if (place == NULL_0 || place == INACTIVE || place == IDLE_PARTITIONED)
    EXPECT(status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && bytes == 0,
           "place %d's empty status has source %d, tag %d, %d bytes", place, status->MPI_SOURCE, status->MPI_TAG, bytes);
}

static void mixture_check(struct mixture *m, uint64_t i, const MPI_Request *array) {
  for (int c = 0; c < 2; c++) side_check(&m->receives[c], i, (uint64_t)(2 * m->before + c));
  EXPECT(m->received == 1000 * m->before + (int)i, "the ordinary message is %d", m->received);
  EXPECT(m->persistent_received == 7777 * m->before + (int)i, "the persistent message is %d", m->persistent_received);
  EXPECT(array[ORDINARY_RECEIVE] == MPI_REQUEST_NULL && array[ORDINARY_SEND] == MPI_REQUEST_NULL,
         "an ordinary request is not null after its completion");
  EXPECT(array[SEND_0] == m->sends[0].request && array[SEND_1] == m->sends[1].request &&
             array[RECEIVE_0] == m->receives[0].request && array[RECEIVE_1] == m->receives[1].request &&
             array[PERSISTENT_SEND] == m->persistent[0],
         "a persistent or partitioned handle changed");
}

static void pready_both(struct mixture *m, uint64_t i) {
  pready_all(m->sends[1].request, 4, RANDOM, i);
  pready_all(m->sends[0].request, 4, REVERSE, i);
}

/* How the requests of one iteration are brought to an end; it makes the partitions ready. */
typedef void complete_fn(struct mixture *m, uint64_t i, MPI_Request *array);

static void run_mixture(const struct context *context, complete_fn *complete) {
  struct mixture m;
  mixture_create(&m, context);
  MPI_Request idle[2];
  int unused = 0;
  struct side idle_side;
  MPI(MPI_Recv_init(&unused, 1, MPI_INT, m.before, TAG + 2, m.comm, &idle[0]));
  side_recv_init(&idle_side, (struct shape){1, 4, MPI_BYTE}, m.before, TAG + 3, m.comm);
  idle[1] = idle_side.request;
  for (uint64_t i = 0; i < 12 && !case_failed(); i++) {
    MPI_Request array[LENGTH];
    mixture_start(&m, i, array, idle);
    complete(&m, i, array);
    mixture_check(&m, i, array);
  }
  for (int c = 0; c < 2; c++) {
    side_destroy(&m.sends[c]);
    side_destroy(&m.receives[c]);
    MPI(MPI_Request_free(&m.persistent[c]));
  }
  MPI(MPI_Request_free(&idle[0]));
  side_destroy(&idle_side);
}

static void by_waitall(struct mixture *m, uint64_t i, MPI_Request *array) {
  MPI_Status statuses[LENGTH];
  pready_both(m, i);
  MPI(MPI_Waitall(LENGTH, array, statuses));
  for (int place = 0; place < LENGTH; place++) check_status(m, place, &statuses[place]);
}

static void by_waitall_ignoring(struct mixture *m, uint64_t i, MPI_Request *array) {
  pready_both(m, i);
  MPI(MPI_Waitall(LENGTH, array, MPI_STATUSES_IGNORE));
}

static void by_testall(struct mixture *m, uint64_t i, MPI_Request *array) {
  MPI_Status statuses[LENGTH];
  int flag = 0;
  for (int n = 0; n < 20; n++) {
    MPI(MPI_Testall(LENGTH, array, &flag, statuses));
    EXPECT(!flag, "MPI_Testall is true with nothing ready");
  }
  EXPECT(array[ORDINARY_SEND] != MPI_REQUEST_NULL, "MPI_Testall completed a request but returned false");
  pready_both(m, i);
  while (!flag && !case_failed()) MPI(MPI_Testall(LENGTH, array, &flag, statuses));
  for (int place = 0; place < LENGTH && flag; place++) check_status(m, place, &statuses[place]);
}

static void any(struct mixture *m, uint64_t i, MPI_Request *array, bool waits) {
  bool seen[LENGTH] = {false};
  pready_both(m, i);
  for (int n = 0; n < NUM_REQUESTS; n++) {
    MPI_Status status;
    int index = -7, flag = 0;
    if (waits) MPI(MPI_Waitany(LENGTH, array, &index, &status));
    while (!waits && !flag && !case_failed()) MPI(MPI_Testany(LENGTH, array, &index, &flag, &status));
    const bool right = index >= 0 && index < LENGTH && index != NULL_0 && index != INACTIVE && index != IDLE_PARTITIONED;
    EXPECT(right, "completion %d is of place %d", n, index);
    if (!right) return;
    EXPECT(!seen[index], "place %d completes twice", index);
    seen[index] = true;
    check_status(m, index, &status);
  }
  int index = -7, flag = 0;
  MPI_Status status;
  MPI(MPI_Waitany(LENGTH, array, &index, &status));
  EXPECT(index == MPI_UNDEFINED, "with all requests inactive, MPI_Waitany returns %d", index);
  MPI(MPI_Testany(LENGTH, array, &index, &flag, &status));
  EXPECT(flag && index == MPI_UNDEFINED, "with all requests inactive, MPI_Testany returns %d, %d", flag, index);
}

static void by_waitany(struct mixture *m, uint64_t i, MPI_Request *array) { any(m, i, array, true); }
static void by_testany(struct mixture *m, uint64_t i, MPI_Request *array) { any(m, i, array, false); }

static void some(struct mixture *m, uint64_t i, MPI_Request *array, bool waits) {
  bool seen[LENGTH] = {false};
  int indices[LENGTH], count = 0, done = 0;
  MPI_Status statuses[LENGTH];
  pready_both(m, i);
  while (done < NUM_REQUESTS && !case_failed()) {
    if (waits) MPI(MPI_Waitsome(LENGTH, array, &count, indices, statuses));
    else MPI(MPI_Testsome(LENGTH, array, &count, indices, statuses));
    EXPECT(count >= (waits ? 1 : 0) && count <= NUM_REQUESTS - done, "%d requests complete after %d", count, done);
    for (int n = 0; n < count && !case_failed(); n++) {
      EXPECT(indices[n] >= 0 && indices[n] < LENGTH && !seen[indices[n]], "place %d completes (again)", indices[n]);
      if (case_failed()) return;
      seen[indices[n]] = true;
      check_status(m, indices[n], &statuses[n]);
      done++;
    }
  }
  EXPECT(!seen[NULL_0] && !seen[INACTIVE] && !seen[IDLE_PARTITIONED], "an inactive request completes");
  MPI(MPI_Waitsome(LENGTH, array, &count, indices, statuses));
  EXPECT(count == MPI_UNDEFINED, "with all requests inactive, MPI_Waitsome returns %d", count);
  MPI(MPI_Testsome(LENGTH, array, &count, indices, MPI_STATUSES_IGNORE));
  EXPECT(count == MPI_UNDEFINED, "with all requests inactive, MPI_Testsome returns %d", count);
}

static void by_waitsome(struct mixture *m, uint64_t i, MPI_Request *array) { some(m, i, array, true); }
static void by_testsome(struct mixture *m, uint64_t i, MPI_Request *array) { some(m, i, array, false); }

/* One at a time, by turns with MPI_Wait, MPI_Test, and MPI_Request_get_status before either. */
static void one_by_one(struct mixture *m, uint64_t i, MPI_Request *array) {
  pready_both(m, i);
  for (int place = 0; place < LENGTH; place++) {
    MPI_Status status;
    int flag = 0;
    if ((place + (int)i) % 3 == 0) {
      while (!flag && !case_failed()) MPI(MPI_Request_get_status(array[place], &flag, &status));
      check_status(m, place, &status);
    }
    if ((place + (int)i) % 2 == 0) {
      MPI(MPI_Wait(&array[place], &status));
    } else {
      flag = 0;
      while (!flag && !case_failed()) MPI(MPI_Test(&array[place], &flag, &status));
    }
    check_status(m, place, &status);
    flag = 0;
    MPI(MPI_Test(&array[place], &flag, &status)); /* inactive now: true, with an empty status */
    EXPECT(flag && status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG,
           "a test of place %d after completion returns %d, source %d, tag %d", place, flag, status.MPI_SOURCE, status.MPI_TAG);
    MPI(MPI_Wait(&array[place], MPI_STATUS_IGNORE));
  }
}

static void waitall_mixed(const struct context *context) {
  run_mixture(context, by_waitall);
  run_mixture(context, by_waitall_ignoring);
}
static void testall_mixed(const struct context *context) { run_mixture(context, by_testall); }
static void waitany_mixed(const struct context *context) { run_mixture(context, by_waitany); }
static void testany_mixed(const struct context *context) { run_mixture(context, by_testany); }
static void waitsome_mixed(const struct context *context) { run_mixture(context, by_waitsome); }
static void testsome_mixed(const struct context *context) { run_mixture(context, by_testsome); }
static void single_mixed(const struct context *context) { run_mixture(context, one_by_one); }

#if MPI_AT_LEAST(4, 1)
static void by_status_of_many(struct mixture *m, uint64_t i, MPI_Request *array) {
  MPI_Status statuses[LENGTH], status;
  int flag = 0, index = -7, count = 0, indices[LENGTH];
  MPI(MPI_Request_get_status_all(LENGTH, array, &flag, statuses));
  EXPECT(!flag, "MPI_Request_get_status_all is true with nothing ready");
  pready_both(m, i);
  while (!flag && !case_failed()) MPI(MPI_Request_get_status_all(LENGTH, array, &flag, statuses));
  for (int place = 0; place < LENGTH && flag; place++) check_status(m, place, &statuses[place]);
  MPI(MPI_Request_get_status_any(LENGTH, array, &index, &flag, &status));
  EXPECT(flag && index >= 0 && index < LENGTH && index != NULL_0 && index != INACTIVE && index != IDLE_PARTITIONED,
         "MPI_Request_get_status_any returns %d, place %d", flag, index);
  if (!case_failed()) check_status(m, index, &status);
  MPI(MPI_Request_get_status_some(LENGTH, array, &count, indices, statuses));
  /* MPICH 5.0 and Intel MPI 2021 leave out persistent requests of their own. */
  EXPECT(count == NUM_REQUESTS || count == NUM_REQUESTS - 2, "MPI_Request_get_status_some returns %d", count);
  int num_partitioned = 0;
  for (int n = 0; n < count && !case_failed(); n++) {
    check_status(m, indices[n], &statuses[n]);
    num_partitioned += indices[n] == SEND_0 || indices[n] == SEND_1 || indices[n] == RECEIVE_0 || indices[n] == RECEIVE_1;
  }
  EXPECT(num_partitioned == 4, "MPI_Request_get_status_some reports %d partitioned requests", num_partitioned);
  MPI(MPI_Waitall(LENGTH, array, statuses));
  for (int place = 0; place < LENGTH; place++) check_status(m, place, &statuses[place]);
}
static void status_of_many(const struct context *context) { run_mixture(context, by_status_of_many); }
#else
static void status_of_many(const struct context *context) {
  (void)context;
  case_skip("this MPI has no MPI_Request_get_status_all");
}
#endif

/* Waitany must leave with what has arrived while the partitioned requests cannot complete. */
static void any_does_not_wait_for_all(const struct context *context) {
  struct mixture m;
  mixture_create(&m, context);
  for (uint64_t i = 0; i < 4 && !case_failed(); i++) {
    MPI_Request array[LENGTH], idle[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    mixture_start(&m, i, array, idle);
    for (int n = 0; n < 4; n++) {
      int index = -7;
      MPI(MPI_Waitany(LENGTH, array, &index, MPI_STATUS_IGNORE));
      EXPECT(index == ORDINARY_RECEIVE || index == ORDINARY_SEND || index == PERSISTENT_RECEIVE || index == PERSISTENT_SEND,
             "place %d completes while nothing is ready", index);
    }
    MPI(MPI_Barrier(m.comm)); /* or the next rank's transfer could be ready before this rank looked */
    pready_all(m.sends[0].request, 4, RANDOM, i);
    for (int n = 0; n < 2; n++) {
      int index = -7;
      MPI(MPI_Waitany(LENGTH, array, &index, MPI_STATUS_IGNORE));
      EXPECT(index == SEND_0 || index == RECEIVE_0, "place %d completes while only the first transfer is ready", index);
    }
    MPI(MPI_Barrier(m.comm));
    pready_all(m.sends[1].request, 4, RANDOM, i);
    MPI(MPI_Waitall(LENGTH, array, MPI_STATUSES_IGNORE));
    mixture_check(&m, i, array);
  }
  for (int c = 0; c < 2; c++) {
    side_destroy(&m.sends[c]);
    side_destroy(&m.receives[c]);
    MPI(MPI_Request_free(&m.persistent[c]));
  }
}

/* MPI 4.1, 4.2.3: true on a null and on an inactive request, and after completion. */
static void parrived_on_inactive(const struct context *context) {
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  int flag = 0;
  MPI(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag));
  EXPECT(flag, "MPI_Parrived on a null request is false");
  struct side sends, receives;
  side_send_init(&sends, (struct shape){4, 30, MPI_BYTE}, next, 35, context->world);
  side_recv_init(&receives, (struct shape){6, 20, MPI_BYTE}, before, 35, context->world);
  for (uint64_t i = 0; i < 3; i++) {
    for (int k = 0; k < 6; k++) {
      flag = 0;
      MPI(MPI_Parrived(receives.request, k, &flag));
      EXPECT(flag, "MPI_Parrived on an inactive request is false in iteration %d", (int)i);
    }
    side_prepare(&sends, i, 3);
    side_prepare(&receives, i, 3);
    MPI(MPI_Start(&receives.request));
    MPI(MPI_Parrived(receives.request, 1, &flag));
    MPI(MPI_Start(&sends.request));
    pready_all(sends.request, 4, RANDOM, i);
    MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
    for (int k = 5; k >= 0; k--) /* arrives by MPI_Parrived alone */
      for (flag = 0; !flag && !case_failed();) MPI(MPI_Parrived(receives.request, k, &flag));
    side_check(&receives, i, 3);
    MPI(MPI_Wait(&receives.request, MPI_STATUS_IGNORE));
  }
  side_destroy(&sends);
  side_destroy(&receives);
}

/* A partition that has arrived holds its data, also where the counts differ and a derived type is unpacked. */
static void parrived_means_data(const struct context *context) {
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  static const int counts[][2] = {{4, 4}, {3, 12}, {12, 3}, {8, 6}, {1, 24}, {24, 1}};
  for (int c = 0; c < 6; c++)
    for (int size = 1; size <= 4096; size *= 4096) {
      struct side sends, receives;
      const int senders = counts[c][0], receivers = counts[c][1], part = 24 * size / receivers;
      side_send_init(&sends, (struct shape){senders, 24 * size / senders, MPI_BYTE}, next, 36, context->world);
      side_recv_init(&receives, (struct shape){receivers, part, MPI_BYTE}, before, 36, context->world);
      for (uint64_t i = 0; i < 5; i++) {
        side_prepare(&sends, i, (uint64_t)context->rank);
        side_prepare(&receives, i, (uint64_t)before);
        MPI(MPI_Start(&receives.request));
        MPI(MPI_Start(&sends.request));
        pready_all(sends.request, senders, RANDOM, i);
        for (int left = receivers, k = 0, flag = 0; left > 0 && !case_failed(); k++) {
          MPI(MPI_Parrived(receives.request, k % receivers, &flag));
          if (k % receivers == 0) left = receivers;
          if (!flag) continue;
          left--;
          const size_t from = (size_t)(k % receivers) * (size_t)part;
          const ptrdiff_t wrong = pattern_first_wrong(receives.buffer, from, from + (size_t)part, i, (uint64_t)before);
          EXPECT(wrong < 0, "partition %d of %d (%d at the sender) has arrived and byte %td is wrong", k % receivers, receivers,
                 senders, wrong);
        }
        MPI(MPI_Wait(&receives.request, MPI_STATUS_IGNORE));
        MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
      }
      side_destroy(&sends);
      side_destroy(&receives);
    }
}

/* With one message per partition a partition arrives while others are not ready. */
static void parrived_early(const struct context *context) {
  const char *segments = getenv("EARLYBIRD_SEGMENTS");
  if (!segments || strcmp(segments, "partition") != 0) {
    case_skip("promised for EARLYBIRD_SEGMENTS=partition only");
    return;
  }
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  for (int receivers = 4; receivers <= 16; receivers *= 2) {
    struct side sends, receives;
    side_send_init(&sends, (struct shape){8, 1600, MPI_BYTE}, next, 37, context->world);
    side_recv_init(&receives, (struct shape){receivers, 12800 / receivers, MPI_BYTE}, before, 37, context->world);
    for (uint64_t i = 0; i < 4; i++) {
      side_prepare(&sends, i, 4);
      side_prepare(&receives, i, 4);
      MPI(MPI_Start(&receives.request));
      MPI(MPI_Start(&sends.request));
      for (int k = 0; k < 6; k++) MPI(MPI_Pready(k, sends.request));
      for (int k = 0; k < receivers; k++) {
        int flag = 0;
        const bool ready = (k + 1) * 8 <= 6 * receivers;
        for (int n = 0; !flag && !case_failed() && (ready || n < 20); n++) MPI(MPI_Parrived(receives.request, k, &flag));
        EXPECT(flag == ready, "with 6 of 8 partitions ready, partition %d of %d has%s arrived", k, receivers, flag ? "" : " not");
      }
      MPI(MPI_Barrier(context->world));
      for (int k = 7; k >= 6; k--) MPI(MPI_Pready(k, sends.request));
      MPI(MPI_Wait(&receives.request, MPI_STATUS_IGNORE));
      MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
      side_check(&receives, i, 4);
    }
    side_destroy(&sends);
    side_destroy(&receives);
  }
}

/* The status counts elements of the receiver's type. */
static void typed_statuses(const struct context *context) {
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  MPI_Datatype pair;
  MPI(MPI_Type_vector(2, 1, 3, MPI_INT, &pair));
  MPI(MPI_Type_commit(&pair));
  struct side sends, receives;
  side_send_init(&sends, (struct shape){4, 6, MPI_INT}, next, 38, context->world);
  side_recv_init(&receives, (struct shape){3, 4, pair}, before, 38, context->world);
  for (uint64_t i = 0; i < 4; i++) {
    side_prepare(&sends, i, 5);
    side_prepare(&receives, i, 5);
    MPI_Request both[2] = {receives.request, sends.request};
    MPI_Status status = {0};
    int count = -1, elements = -1, cancelled = -1;
    MPI(MPI_Startall(2, both));
    pready_all(both[1], 4, RANDOM, i);
    MPI(MPI_Wait(&both[0], &status));
    MPI(MPI_Wait(&both[1], MPI_STATUS_IGNORE));
    MPI(MPI_Get_count(&status, pair, &count));
    MPI(MPI_Get_elements(&status, pair, &elements));
    MPI(MPI_Test_cancelled(&status, &cancelled));
    EXPECT(count == 12 && elements == 24 && cancelled == 0, "the status counts %d, %d elements, cancelled %d", count, elements,
           cancelled);
    side_check(&receives, i, 5);
  }
  side_destroy(&sends);
  side_destroy(&receives);
  MPI(MPI_Type_free(&pair));
}

/* Ordinary requests alone, while partitioned ones live: nothing of theirs may change. */
static void ordinary_alone(const struct context *context) {
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  struct side live;
  side_recv_init(&live, (struct shape){1, 4, MPI_BYTE}, before, 39, context->world);
  int sent[8], received[8], indices[16], count = 0, done = 0;
  MPI_Request requests[16];
  for (int n = 0; n < 8; n++) {
    sent[n] = 10 * context->rank + n;
    MPI(MPI_Irecv(&received[n], 1, MPI_INT, before, n, context->world, &requests[n]));
    MPI(MPI_Isend(&sent[n], 1, MPI_INT, next, n, context->world, &requests[8 + n]));
  }
  while (done < 16 && !case_failed()) {
    MPI(MPI_Waitsome(16, requests, &count, indices, MPI_STATUSES_IGNORE));
    done += count;
  }
  for (int n = 0; n < 8; n++) EXPECT(received[n] == 10 * before + n, "message %d is %d", n, received[n]);
  MPI(MPI_Irecv(&received[0], 1, MPI_INT, before, 77, context->world, &requests[0]));
  MPI(MPI_Cancel(&requests[0])); /* of an ordinary request it still works */
  MPI_Status status;
  int cancelled = 0;
  MPI(MPI_Wait(&requests[0], &status));
  MPI(MPI_Test_cancelled(&status, &cancelled));
  EXPECT(cancelled, "an ordinary receive can no longer be cancelled");
  MPI(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
  side_destroy(&live);
}

const struct test_case mixture_cases[] = {
    {"waitall_completes_a_mixture_of_requests", waitall_mixed, 0},
    {"testall_completes_a_mixture_of_requests", testall_mixed, 0},
    {"waitany_completes_a_mixture_of_requests_one_by_one", waitany_mixed, 0},
    {"testany_completes_a_mixture_of_requests_one_by_one", testany_mixed, 0},
    {"waitsome_completes_a_mixture_of_requests", waitsome_mixed, 0},
    {"testsome_completes_a_mixture_of_requests", testsome_mixed, 0},
    {"wait_test_and_get_status_complete_a_mixture_of_requests", single_mixed, 0},
    {"get_status_of_many_tells_of_a_mixture_of_requests", status_of_many, 0},
    {"waitany_leaves_with_what_is_complete", any_does_not_wait_for_all, 0},
    {"parrived_is_true_on_null_and_inactive_requests", parrived_on_inactive, 0},
    {"an_arrived_partition_holds_its_data", parrived_means_data, 0},
    {"a_partition_arrives_before_the_others_are_ready", parrived_early, 0},
    {"the_status_counts_elements_of_the_receivers_type", typed_statuses, 0},
    {"ordinary_requests_are_as_ever_while_partitioned_ones_live", ordinary_alone, 0},
    {0},
};
