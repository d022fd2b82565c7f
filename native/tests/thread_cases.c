/* Threads: many call Pready at once on one request and on several, poll Parrived, and run channels of their own. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "case.h"

/* Instrumented code is slow, and its reports do not wait for the moment at which things go wrong. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { NUM_STARTS = 6 };
#else
enum { NUM_STARTS = 20 };
#endif

enum { NUM_THREADS = 4 };

struct worker {
  pthread_t thread;
  int index;
  void (*work)(struct worker *worker);
  void *shared;
};

static void *enter(void *argument) {
  struct worker *worker = argument;
  worker->work(worker);
  return NULL;
}

static void in_threads(void (*work)(struct worker *), void *shared) {
  struct worker workers[NUM_THREADS];
  for (int t = 0; t < NUM_THREADS; t++) {
    workers[t] = (struct worker){.index = t, .work = work, .shared = shared};
    EXPECT(pthread_create(&workers[t].thread, NULL, enter, &workers[t]) == 0, "cannot create a thread");
  }
  for (int t = 0; t < NUM_THREADS; t++) pthread_join(workers[t].thread, NULL);
}

static bool lacks_level(const struct context *context, int level) {
  if (context->level >= level) return false;
  case_skip("the thread level of this launch is too low");
  return true;
}

static int next_of(const struct context *context) { return (context->rank + 1) % context->num_ranks; }
static int before_of(const struct context *context) { return (context->rank + context->num_ranks - 1) % context->num_ranks; }

struct ready_work {
  struct side *sends;
  int num_sends, num_partitions;
  pthread_barrier_t barrier; /* the threads begin together, as the end of a compute region would let them */
  pthread_mutex_t mutex;
  bool serialised;
};

/* Thread t makes partitions t, t + 4, ... ready: neighbours in one segment belong to different threads. */
static void make_ready(struct worker *worker) {
  struct ready_work *work = worker->shared;
  pthread_barrier_wait(&work->barrier);
  for (int k = worker->index; k < work->num_partitions; k += NUM_THREADS)
    for (int s = 0; s < work->num_sends; s++) {
      if (work->serialised) pthread_mutex_lock(&work->mutex);
      MPI(MPI_Pready(k, work->sends[(s + worker->index) % work->num_sends].request));
      if (work->serialised) pthread_mutex_unlock(&work->mutex);
    }
}

static void threads_make_ready(const struct context *context, int num_requests, bool serialised) {
  struct side sends[8], receives[8];
  MPI_Request requests[16];
  for (int size = 1; size <= 8192; size *= 8192)
    for (int partitions = 4; partitions <= 64; partitions *= 4) {
      struct ready_work work = {.sends = sends, .num_sends = num_requests, .num_partitions = partitions, .serialised = serialised};
      pthread_barrier_init(&work.barrier, NULL, NUM_THREADS);
      pthread_mutex_init(&work.mutex, NULL);
      for (int c = 0; c < num_requests; c++) {
        const int tag = c % 2 ? 51 : 30051;
        side_send_init(&sends[c], (struct shape){partitions, size, MPI_BYTE}, next_of(context), tag, context->world);
        side_recv_init(&receives[c], (struct shape){partitions / 2, 2 * (MPI_Count)size, MPI_BYTE}, before_of(context), tag,
                       context->world);
      }
      for (uint64_t i = 0; i < NUM_STARTS; i++) {
        for (int c = 0; c < num_requests; c++) {
          side_prepare(&sends[c], i, (uint64_t)c);
          side_prepare(&receives[c], i, (uint64_t)c);
          requests[c] = receives[c].request;
          requests[num_requests + c] = sends[c].request;
        }
        MPI(MPI_Startall(2 * num_requests, requests));
        in_threads(make_ready, &work);
        MPI(MPI_Waitall(2 * num_requests, requests, MPI_STATUSES_IGNORE));
        for (int c = 0; c < num_requests; c++) side_check(&receives[c], i, (uint64_t)c);
      }
      for (int c = 0; c < num_requests; c++) {
        side_destroy(&sends[c]);
        side_destroy(&receives[c]);
      }
      pthread_barrier_destroy(&work.barrier);
      pthread_mutex_destroy(&work.mutex);
    }
}

static void on_one_request(const struct context *context) {
  if (lacks_level(context, MPI_THREAD_MULTIPLE)) return;
  threads_make_ready(context, 1, false);
}

static void on_several_requests(const struct context *context) {
  if (lacks_level(context, MPI_THREAD_MULTIPLE)) return;
  threads_make_ready(context, 8, false);
}

static void serialised(const struct context *context) {
  if (lacks_level(context, MPI_THREAD_SERIALIZED)) return;
  threads_make_ready(context, 3, true);
}

/* The main thread waits for the sends while the threads still make partitions ready. */
struct waited_work {
  struct ready_work ready;
  struct side *receives;
};

static void wait_or_make_ready(struct worker *worker) {
  struct waited_work *work = worker->shared;
  if (worker->index > 0) {
    for (int k = worker->index - 1; k < work->ready.num_partitions; k += NUM_THREADS - 1)
      MPI(MPI_Pready(k, work->ready.sends[0].request));
  } else {
    MPI_Request both[2] = {work->ready.sends[0].request, work->receives[0].request};
    MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  }
}

static void while_another_waits(const struct context *context) {
  if (lacks_level(context, MPI_THREAD_MULTIPLE)) return;
  struct side sends, receives;
  side_send_init(&sends, (struct shape){24, 700, MPI_BYTE}, next_of(context), 52, context->world);
  side_recv_init(&receives, (struct shape){24, 700, MPI_BYTE}, before_of(context), 52, context->world);
  for (uint64_t i = 0; i < 2 * NUM_STARTS; i++) {
    struct waited_work work = {.ready = {.sends = &sends, .num_partitions = 24}, .receives = &receives};
    side_prepare(&sends, i, 1);
    side_prepare(&receives, i, 1);
    MPI_Request both[2] = {receives.request, sends.request};
    MPI(MPI_Startall(2, both));
    in_threads(wait_or_make_ready, &work);
    side_check(&receives, i, 1);
  }
  side_destroy(&sends);
  side_destroy(&receives);
}

struct arrival_work {
  struct side *sends, *receives;
  uint64_t iteration, channel;
  atomic_int num_arrived;
};

/* Each thread makes its quarter ready, then polls for the partitions of its quarter and looks at their bytes. */
static void send_and_poll(struct worker *worker) {
  struct arrival_work *work = worker->shared;
  const int senders = work->sends->shape.num_partitions / NUM_THREADS;
  const int receivers = work->receives->shape.num_partitions / NUM_THREADS;
  const size_t part = work->receives->size / (size_t)work->receives->shape.num_partitions;
  for (int k = worker->index * senders; k < (worker->index + 1) * senders; k++) MPI(MPI_Pready(k, work->sends->request));
  for (int k = worker->index * receivers; k < (worker->index + 1) * receivers; k++) {
    int flag = 0;
    while (!flag && !case_failed()) MPI(MPI_Parrived(work->receives->request, k, &flag));
    const size_t from = (size_t)k * part;
    EXPECT(pattern_first_wrong(work->receives->buffer, from, from + part, work->iteration, work->channel) < 0,
           "partition %d has arrived for one thread and its data is wrong", k);
    atomic_fetch_add(&work->num_arrived, 1);
  }
}

static void threads_poll(const struct context *context) {
  if (lacks_level(context, MPI_THREAD_MULTIPLE)) return;
  for (int size = 8; size <= 8192; size *= 1024)
    for (int receivers = 4; receivers <= 32; receivers *= 8) {
      struct side sends, receives;
      side_send_init(&sends, (struct shape){16, size, MPI_BYTE}, next_of(context), 53, context->world);
      side_recv_init(&receives, (struct shape){receivers, 16 * size / receivers, MPI_BYTE}, before_of(context), 53, context->world);
      for (uint64_t i = 0; i < NUM_STARTS; i++) {
        struct arrival_work work = {&sends, &receives, i, (uint64_t)before_of(context), 0};
        side_prepare(&sends, i, (uint64_t)context->rank);
        side_prepare(&receives, i, (uint64_t)before_of(context));
        MPI_Request both[2] = {receives.request, sends.request};
        MPI(MPI_Startall(2, both));
        in_threads(send_and_poll, &work);
        EXPECT(work.num_arrived == receivers, "%d of %d partitions arrived", work.num_arrived, receivers);
        MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        side_check(&receives, i, (uint64_t)before_of(context));
      }
      side_destroy(&sends);
      side_destroy(&receives);
    }
}

enum { GAPPED_PARTITIONS = 6, GAPPED_ELEMENTS = 40000 };

struct gapped_work {
  MPI_Request request;
  const int *data; /* three int an element, the middle one in a gap */
  int expected;
};

/* One thread waits for a transfer that has to be unpacked, the others ask for its partitions meanwhile. */
static void wait_or_poll(struct worker *worker) {
  struct gapped_work *work = worker->shared;
  if (worker->index == 0) {
    MPI_Request request = work->request;
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return;
  }
  for (int k = GAPPED_PARTITIONS - 1; k >= 0; k--) {
    int flag = 0;
    while (!flag && !case_failed()) MPI(MPI_Parrived(work->request, k, &flag));
    const int last = work->data[3 * (k + 1) * GAPPED_ELEMENTS - 1];
    EXPECT(last == work->expected, "partition %d has arrived, but its last element is %d instead of %d", k, last, work->expected);
  }
}

static void threads_poll_beside_wait(const struct context *context) {
  if (lacks_level(context, MPI_THREAD_MULTIPLE)) return;
  const size_t num = 3 * (size_t)GAPPED_PARTITIONS * GAPPED_ELEMENTS;
  int *sent = malloc(num * sizeof *sent), *received = malloc(num * sizeof *received);
  MPI_Datatype gapped;
  MPI_Request sends, receives;
  MPI(MPI_Type_vector(2, 1, 2, MPI_INT, &gapped));
  MPI(MPI_Type_commit(&gapped));
  MPI(MPI_Psend_init(sent, GAPPED_PARTITIONS, GAPPED_ELEMENTS, gapped, next_of(context), 54, context->world, MPI_INFO_NULL,
                     &sends));
  MPI(MPI_Precv_init(received, GAPPED_PARTITIONS, GAPPED_ELEMENTS, gapped, before_of(context), 54, context->world, MPI_INFO_NULL,
                     &receives));
  for (int i = 0; i < 6; i++) {
    struct gapped_work work = {receives, received, i};
    for (size_t at = 0; at < num; at++) sent[at] = i, received[at] = -1;
    MPI(MPI_Start(&receives));
    MPI(MPI_Start(&sends));
    MPI(MPI_Pready_range(0, GAPPED_PARTITIONS - 1, sends));
    in_threads(wait_or_poll, &work);
    MPI(MPI_Wait(&sends, MPI_STATUS_IGNORE));
  }
  MPI(MPI_Request_free(&sends));
  MPI(MPI_Request_free(&receives));
  MPI(MPI_Type_free(&gapped));
  free(sent);
  free(received);
}

struct channel_work {
  const struct context *context;
  MPI_Comm comm; /* shared by all threads, or NULL where each has one of its own */
  MPI_Comm own[NUM_THREADS];
};

/* Init, transfers and free of channels of one tag per thread, all threads at once. */
static void own_channels(struct worker *worker) {
  struct channel_work *work = worker->shared;
  const MPI_Comm comm = work->comm == MPI_COMM_NULL ? work->own[worker->index] : work->comm;
  for (int round = 0; round < 15; round++) {
    const int tag = 60 + worker->index + (round % 2) * 30000;
    struct side sends, receives;
    side_send_init(&sends, (struct shape){5, 60, MPI_BYTE}, next_of(work->context), tag, comm);
    side_recv_init(&receives, (struct shape){3, 100, MPI_BYTE}, before_of(work->context), tag, comm);
    for (uint64_t i = 0; i < 4; i++) {
      side_prepare(&sends, i, (uint64_t)worker->index);
      side_prepare(&receives, i, (uint64_t)worker->index);
      MPI_Request both[2] = {receives.request, sends.request};
      MPI(MPI_Startall(2, both));
      pready_all(both[1], 5, RANDOM, i);
      if (i % 2) MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
      else
        for (int flag = 0; !flag && !case_failed();) MPI(MPI_Testall(2, both, &flag, MPI_STATUSES_IGNORE));
      side_check(&receives, i, (uint64_t)worker->index);
    }
    side_destroy(&sends);
    side_destroy(&receives);
  }
}

static void channels_of_threads(const struct context *context) {
  if (lacks_level(context, MPI_THREAD_MULTIPLE)) return;
  struct channel_work work = {.context = context, .comm = context->world};
  in_threads(own_channels, &work);
  work.comm = MPI_COMM_NULL;
  for (int t = 0; t < NUM_THREADS; t++) MPI(MPI_Comm_dup(context->world, &work.own[t]));
  in_threads(own_channels, &work);
  for (int t = 0; t < NUM_THREADS; t++) MPI(MPI_Comm_free(&work.own[t]));
}

/* Half the threads run partitioned channels, the others ordinary traffic and communicator calls. */
static void own_channels_or_messages(struct worker *worker) {
  struct channel_work *work = worker->shared;
  if (worker->index % 2 == 0) {
    own_channels(worker);
    return;
  }
  const MPI_Comm comm = work->own[worker->index];
  for (int i = 0; i < 200; i++) {
    int sent = i, received = -1;
    MPI(MPI_Sendrecv(&sent, 1, MPI_INT, next_of(work->context), 1, &received, 1, MPI_INT, before_of(work->context), 1, comm,
                     MPI_STATUS_IGNORE));
    EXPECT(received == i, "message %d is %d", i, received);
    if (i % 50 == 0) {
      MPI_Comm made;
      MPI(MPI_Comm_dup(comm, &made));
      MPI(MPI_Comm_free(&made));
    }
  }
}

static void channels_beside_messages(const struct context *context) {
  if (lacks_level(context, MPI_THREAD_MULTIPLE)) return;
  struct channel_work work = {.context = context, .comm = MPI_COMM_NULL};
  for (int t = 0; t < NUM_THREADS; t++) MPI(MPI_Comm_dup(context->world, &work.own[t]));
  in_threads(own_channels_or_messages, &work);
  for (int t = 0; t < NUM_THREADS; t++) MPI(MPI_Comm_free(&work.own[t]));
}

static void *make_and_free_a_request(void *unused) {
  char data[4];
  MPI_Request request;
  (void)unused;
  MPI(MPI_Precv_init(data, 1, 4, MPI_BYTE, MPI_PROC_NULL, 55, MPI_COMM_SELF, MPI_INFO_NULL, &request));
  MPI(MPI_Request_free(&request));
  return NULL;
}

static int num_types_gone;

static int type_goes(MPI_Datatype type, int keyval, void *value, void *extra) {
  pthread_t other;
  (void)type, (void)keyval, (void)value, (void)extra;
  num_types_gone++;
  EXPECT(pthread_create(&other, NULL, make_and_free_a_request, NULL) == 0, "cannot create a thread");
  pthread_join(other, NULL);
  return MPI_SUCCESS;
}

/* The last reference to a type goes with a receive that is freed before its match. */
static void callback_of_a_type(const struct context *context) {
  enum { TAG = 30055 };
  int data[8] = {0}, keyval = MPI_KEYVAL_INVALID;
  MPI_Datatype gapped;
  MPI_Request freed, late;
  struct side sends, receives;
  if (lacks_level(context, MPI_THREAD_MULTIPLE)) return;
  num_types_gone = 0;
  MPI(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, type_goes, &keyval, NULL));
  MPI(MPI_Type_vector(2, 1, 2, MPI_INT, &gapped));
  MPI(MPI_Type_commit(&gapped));
  MPI(MPI_Type_set_attr(gapped, keyval, NULL));
  MPI(MPI_Precv_init(data, 1, 1, gapped, context->rank, TAG, context->world, MPI_INFO_NULL, &freed));
  MPI(MPI_Type_free(&gapped));
  MPI(MPI_Request_free(&freed));
  MPI(MPI_Psend_init(data, 1, 2, MPI_INT, context->rank, TAG, context->world, MPI_INFO_NULL, &late));
  side_send_init(&sends, (struct shape){4, 10, MPI_BYTE}, context->rank, TAG, context->world);
  side_recv_init(&receives, (struct shape){4, 10, MPI_BYTE}, context->rank, TAG, context->world);
  side_prepare(&sends, 1, 1);
  side_prepare(&receives, 1, 1);
  MPI_Request both[2] = {receives.request, sends.request};
  MPI(MPI_Startall(2, both));
  pready_all(sends.request, 4, RANDOM, 1);
  MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
  side_check(&receives, 1, 1);
  EXPECT(num_types_gone == 1, "the type's callback was called %d times", num_types_gone);
  side_destroy(&sends);
  side_destroy(&receives);
  MPI(MPI_Request_free(&late));
  MPI(MPI_Type_free_keyval(&keyval));
}

static void level_is_given(const struct context *context) {
  int level = -1;
  MPI(MPI_Query_thread(&level));
  EXPECT(level == context->level, "MPI_Query_thread returns %d, MPI_Init_thread returned %d", level, context->level);
}

const struct test_case thread_cases[] = {
    {"the_thread_level_is_the_one_provided", level_is_given, 0},
    {"serialised_threads_make_partitions_ready", serialised, 0},
    {"four_threads_make_partitions_of_one_request_ready", on_one_request, 0},
    {"four_threads_make_partitions_of_several_requests_ready", on_several_requests, 0},
    {"threads_make_partitions_ready_while_another_waits", while_another_waits, 0},
    {"threads_poll_for_their_partitions", threads_poll, 0},
    {"threads_poll_for_partitions_while_another_waits", threads_poll_beside_wait, 0},
    {"a_callback_of_a_type_may_wait_for_another_thread", callback_of_a_type, 0},
    {"threads_run_channels_of_their_own", channels_of_threads, 30},
    {"threads_run_channels_beside_ordinary_messages", channels_beside_messages, 30},
    {0},
};
