/* Threads that call MPI_Pready and MPI_Parrived side by side at whatever thread level was given. Below MPI_THREAD_MULTIPLE
 * that is erroneous, but programs do it and the MPIs let them: nothing may hang, and every byte must be right. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "case.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { NUM_STARTS = 40 };
#else
enum { NUM_STARTS = 150 };
#endif

enum { MAX_THREADS = 4, TAG = 71, FAR_TAG = 30071 };

struct team {
  pthread_t threads[MAX_THREADS];
  int num_threads, num_sharing; /* sharing: those that make partitions ready */
  pthread_barrier_t begins, ends;
  bool goes_on; /* read between the barriers */
  atomic_int next_index;
  void (*work)(struct team *team, int index);
  struct side *sends, *receives;
  int num_requests;
};

static void *enter(void *argument) {
  struct team *team = argument;
  const int index = atomic_fetch_add(&team->next_index, 1);
  for (;;) {
    pthread_barrier_wait(&team->begins);
    if (!team->goes_on) return NULL;
    team->work(team, index);
    pthread_barrier_wait(&team->ends);
  }
}

static void team_begin(struct team *team) {
  team->next_index = 0;
  team->goes_on = true;
  pthread_barrier_init(&team->begins, NULL, (unsigned)team->num_threads + 1);
  pthread_barrier_init(&team->ends, NULL, (unsigned)team->num_threads + 1);
  for (int t = 0; t < team->num_threads; t++)
    EXPECT(pthread_create(&team->threads[t], NULL, enter, team) == 0, "cannot create a thread");
}

static void team_end(struct team *team) {
  team->goes_on = false;
  pthread_barrier_wait(&team->begins);
  for (int t = 0; t < team->num_threads; t++) pthread_join(team->threads[t], NULL);
  pthread_barrier_destroy(&team->begins);
  pthread_barrier_destroy(&team->ends);
}

/* Neighbours in one segment belong to different threads. */
static void make_ready(struct team *team, int index) {
  for (int r = 0; r < team->num_requests; r++)
    for (int k = index; k < team->sends[r].shape.num_partitions; k += team->num_sharing) MPI(MPI_Pready(k, team->sends[r].request));
}

static void make_ready_and_poll(struct team *team, int index) {
  make_ready(team, index);
  for (int r = 0; r < team->num_requests; r++)
    for (int k = index; k < team->receives[r].shape.num_partitions; k += team->num_sharing)
      for (int flag = 0; !flag && !case_failed();) MPI(MPI_Parrived(team->receives[r].request, k, &flag));
}

/* What the main thread does while the others work. */
enum main_thread { STANDS_BY, WAITS, SHARES };

/* Restarts of one request with canonical tags and one without, made ready by `num_threads` besides the main thread. */
static void restart(const struct context *context, struct shape shape, int num_threads, enum main_thread meanwhile,
                    void (*work)(struct team *, int)) {
  struct side sends[2], receives[2];
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  struct team team = {.num_threads = num_threads, .work = work, .sends = sends, .receives = receives, .num_requests = 2};
  team.num_sharing = num_threads + (meanwhile == SHARES);
  for (int r = 0; r < 2; r++) {
    side_send_init(&sends[r], shape, next, r ? FAR_TAG : TAG, context->world);
    side_recv_init(&receives[r], shape, before, r ? FAR_TAG : TAG, context->world);
  }
  MPI_Request requests[4] = {receives[0].request, receives[1].request, sends[0].request, sends[1].request};
  team_begin(&team);
  for (uint64_t i = 0; i < NUM_STARTS && !case_failed(); i++) {
    for (int r = 0; r < 2; r++) {
      side_prepare(&sends[r], i, (uint64_t)(10 * context->rank + r));
      side_prepare(&receives[r], i, (uint64_t)(10 * before + r));
    }
    MPI(MPI_Startall(4, requests));
    pthread_barrier_wait(&team.begins);
    if (meanwhile == SHARES) work(&team, num_threads);
    if (meanwhile == WAITS) MPI(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    pthread_barrier_wait(&team.ends);
    if (meanwhile != WAITS) MPI(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    for (int r = 0; r < 2; r++) side_check(&receives[r], i, (uint64_t)(10 * before + r));
  }
  team_end(&team);
  for (int r = 0; r < 2; r++) {
    side_destroy(&sends[r]);
    side_destroy(&receives[r]);
  }
}

static const struct shape small = {16, 8, MPI_BYTE}, large = {8, 40000, MPI_BYTE};

/* The thread that starts the requests counts alone at first, and then beside others. */
static void ready_beside_main(const struct context *context) {
  restart(context, small, 0, SHARES, make_ready);
  restart(context, small, 2, SHARES, make_ready);
  restart(context, large, 1, SHARES, make_ready);
}

static void ready_side_by_side(const struct context *context) {
  for (int num_threads = 2; num_threads <= MAX_THREADS; num_threads++) restart(context, small, num_threads, STANDS_BY, make_ready);
  restart(context, large, 2, STANDS_BY, make_ready);
}

static void ready_while_main_waits(const struct context *context) {
  for (int num_threads = 2; num_threads <= MAX_THREADS; num_threads += 2) restart(context, small, num_threads, WAITS, make_ready);
  restart(context, large, 2, WAITS, make_ready);
}

static void poll_side_by_side(const struct context *context) {
  restart(context, small, 2, STANDS_BY, make_ready_and_poll);
  restart(context, large, 2, STANDS_BY, make_ready_and_poll);
}

static void gaps_side_by_side(const struct context *context) {
  MPI_Datatype gapped;
  MPI(MPI_Type_vector(2, 1, 2, MPI_INT, &gapped));
  MPI(MPI_Type_commit(&gapped));
  restart(context, (struct shape){8, 50, gapped}, MAX_THREADS, STANDS_BY, make_ready);
  MPI(MPI_Type_free(&gapped));
}

/* Answers what has arrived. */
static void answer(struct team *team, int index) {
  (void)index;
  for (int k = 0; k < team->receives->shape.num_partitions; k++)
    for (int flag = 0; !flag && !case_failed();) MPI(MPI_Parrived(team->receives->request, k, &flag));
  pready_all(team->sends->request, team->sends->shape.num_partitions, FORWARD, 0);
}

/* Rank 0: the main thread waits for a large result, which rank 1 sends when it has the answer of the other thread to its question. */
static void wait_for_result(struct team *team, struct side *result) {
  MPI_Request requests[3] = {team->receives->request, team->sends->request, result->request};
  MPI(MPI_Startall(3, requests));
  pthread_barrier_wait(&team->begins);
  MPI(MPI_Wait(&result->request, MPI_STATUS_IGNORE));
  pthread_barrier_wait(&team->ends);
  MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
}

static void ask(struct side *question, struct side *answered, struct side *result) {
  enum { PAUSE_US = 3000 }; /* until rank 0 waits */
  MPI_Request requests[3] = {question->request, answered->request, result->request};
  MPI(MPI_Startall(3, requests));
  (void)usleep(PAUSE_US);
  pready_all(question->request, question->shape.num_partitions, FORWARD, 0);
  MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  pready_all(result->request, result->shape.num_partitions, FORWARD, 0);
  MPI(MPI_Wait(&result->request, MPI_STATUS_IGNORE));
}

static void answer_while_main_waits(const struct context *context) {
  enum { NUM_ANSWERS = 8, NUM_SIDES = 3, ANSWER = 1 };
  static const struct shape shapes[NUM_SIDES] = {{4, 64, MPI_BYTE}, {4, 64, MPI_BYTE}, {1, 600000, MPI_BYTE}};
  struct side sides[NUM_SIDES]; /* the question, the answer, the result */
  struct team team = {.num_threads = 1, .num_sharing = 1, .work = answer, .receives = &sides[0], .sends = &sides[ANSWER]};
  const bool answers = context->rank == 0;
  if (context->num_ranks < 2) case_skip("two ranks show it");
  if (context->num_ranks < 2 || context->rank > 1) return;
  for (int s = 0; s < NUM_SIDES; s++)
    (answers == (s == ANSWER) ? side_send_init : side_recv_init)(&sides[s], shapes[s], 1 - context->rank, TAG + s, context->world);
  if (answers) team_begin(&team);
  for (uint64_t i = 0; i < NUM_ANSWERS && !case_failed(); i++) {
    for (int s = 0; s < NUM_SIDES; s++) side_prepare(&sides[s], i, (uint64_t)s);
    if (answers) wait_for_result(&team, &sides[2]);
    else ask(&sides[0], &sides[ANSWER], &sides[2]);
    for (int s = 0; s < NUM_SIDES; s++)
      if (!sides[s].sends) side_check(&sides[s], i, (uint64_t)s);
  }
  if (answers) team_end(&team);
  for (int s = 0; s < NUM_SIDES; s++) side_destroy(&sides[s]);
}

const struct test_case level_cases[] = {
    /* First: once threads have counted side by side, starts have no owner. */
    {"threads_make_partitions_ready_beside_the_main_thread_at_any_level", ready_beside_main, 40},
    {"threads_side_by_side_make_partitions_ready_at_any_level", ready_side_by_side, 40},
    {"threads_make_partitions_ready_while_the_main_thread_waits_at_any_level", ready_while_main_waits, 40},
    {"threads_side_by_side_poll_at_any_level", poll_side_by_side, 40},
    {"a_thread_answers_an_arrival_while_the_main_thread_waits_for_what_follows_at_any_level", answer_while_main_waits, 20},
    {"threads_side_by_side_make_partitions_with_gaps_ready_at_any_level", gaps_side_by_side, 40},
    {0},
};
