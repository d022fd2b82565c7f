/* Misuse: the right error class, through the communicator's error handler, with the request still usable. */
#include <pthread.h>
#include <stdlib.h>

#include "case.h"

enum { TAG = 41 };

static int num_handled, last_handled;

/* A handler is variadic by MPI's own prototype. */
static void count_errors(MPI_Comm *comm, int *code, ...) {
  (void)comm;
  num_handled++;
  last_handled = *code;
}

/* A communicator whose errors are counted by a handler of the user's. */
static MPI_Comm counting_comm(const struct context *context) {
  MPI_Comm made;
  MPI_Errhandler handler;
  MPI(MPI_Comm_dup(context->world, &made));
  MPI(MPI_Comm_create_errhandler(count_errors, &handler));
  MPI(MPI_Comm_set_errhandler(made, handler));
  MPI(MPI_Errhandler_free(&handler));
  return made;
}

static void expect_class(const char *what, int code, int class) {
  EXPECT(error_class(code) == class, "%s returns class %d instead of %d", what, error_class(code), class);
}

/* The user's handler was called once with the class; what is returned after a handler that returns is not said
   (MPICH 5.0 returns MPI_SUCCESS). */
static void expect_handled(const char *what, int code, int class) {
  (void)code;
  EXPECT(num_handled == 1 && error_class(last_handled) == class, "%s calls the error handler %d times, with class %d for %d", what,
         num_handled, num_handled ? error_class(last_handled) : 0, class);
  num_handled = 0;
}

typedef void check_fn(const char *what, int code, int class);

static void every_init_error(MPI_Comm comm, check_fn *check) {
  int num_ranks = 0, *bound = NULL, flag = 0;
  char data[64];
  MPI_Request request = MPI_REQUEST_NULL;
  MPI(MPI_Comm_size(comm, &num_ranks));
  MPI(MPI_Comm_get_attr(comm, MPI_TAG_UB, &bound, &flag));
  const MPI_Info info = MPI_INFO_NULL;
#define BOTH(class, partitions, count, type, peer, tag)                                         \
  check("MPI_Psend_init(" #partitions ", " #count ", " #type ", " #peer ", " #tag ")",          \
        MPI_Psend_init(data, partitions, count, type, peer, tag, comm, info, &request), class); \
  check("MPI_Precv_init(" #partitions ", " #count ", " #type ", " #peer ", " #tag ")",          \
        MPI_Precv_init(data, partitions, count, type, peer, tag, comm, info, &request), class)
  BOTH(MPI_ERR_ARG, 0, 1, MPI_BYTE, 0, TAG);
  BOTH(MPI_ERR_ARG, -3, 1, MPI_BYTE, 0, TAG);
  BOTH(MPI_ERR_COUNT, 2, -1, MPI_BYTE, 0, TAG);
  BOTH(MPI_ERR_TYPE, 2, 1, MPI_DATATYPE_NULL, 0, TAG);
  BOTH(MPI_ERR_RANK, 2, 1, MPI_BYTE, MPI_ANY_SOURCE, TAG);
  BOTH(MPI_ERR_RANK, 2, 1, MPI_BYTE, num_ranks, TAG);
  BOTH(MPI_ERR_RANK, 2, 1, MPI_BYTE, -77, TAG);
  BOTH(MPI_ERR_TAG, 2, 1, MPI_BYTE, 0, MPI_ANY_TAG);
  BOTH(MPI_ERR_TAG, 2, 1, MPI_BYTE, 0, -5);
  if (*bound < INT32_MAX) {
    BOTH(MPI_ERR_TAG, 2, 1, MPI_BYTE, 0, *bound + 1);
  }
#undef BOTH
}

/* Nothing of it is ever touched. */
static void huge_element(const struct context *context) {
  char data[1];
  MPI_Datatype block, gapped;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI(MPI_Type_contiguous(1 << 30, MPI_BYTE, &block));
  MPI(MPI_Type_vector(2, 1, 2, block, &gapped));
  MPI(MPI_Type_commit(&gapped));
  const int code = MPI_Psend_init(data, 1, 1, gapped, context->rank, TAG, context->world, MPI_INFO_NULL, &request);
  expect_class("MPI_Psend_init of elements of 2 GiB with gaps", code, MPI_ERR_TYPE);
  MPI(MPI_Type_free(&gapped));
  MPI(MPI_Type_free(&block));
}

static void init_errors(const struct context *context) { every_init_error(context->world, expect_class); }

static void init_errors_handled(const struct context *context) {
  MPI_Comm comm = counting_comm(context);
  num_handled = 0;
  every_init_error(comm, expect_handled);
  MPI(MPI_Comm_free(&comm));
}

static void null_communicator(const struct context *context) {
  (void)context; /* MPI 4.1, 9.3: without a communicator the error is that of MPI_COMM_SELF or MPI_COMM_WORLD */
  int data = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  expect_class("MPI_Psend_init on no communicator",
               MPI_Psend_init(&data, 1, 1, MPI_INT, 0, TAG, MPI_COMM_NULL, MPI_INFO_NULL, &request), MPI_ERR_COMM);
  expect_class("MPI_Precv_init on no communicator",
               MPI_Precv_init(&data, 1, 1, MPI_INT, 0, TAG, MPI_COMM_NULL, MPI_INFO_NULL, &request), MPI_ERR_COMM);
}

/* A misuse at every state of a pair of requests; in between the transfers go on and must be right. */
static void every_request_error(MPI_Comm comm, bool free_comm, check_fn *check) {
  int rank = 0, num_ranks = 1, flag = 0;
  MPI(MPI_Comm_rank(comm, &rank));
  MPI(MPI_Comm_size(comm, &num_ranks));
  const int next = (rank + 1) % num_ranks, before = (rank + num_ranks - 1) % num_ranks;
  for (int tag = TAG; tag <= TAG + 30000; tag += 30000) {
    struct side sends, receives;
    side_send_init(&sends, (struct shape){4, 25, MPI_BYTE}, next, tag, comm);
    side_recv_init(&receives, (struct shape){2, 50, MPI_BYTE}, before, tag, comm);
    if (free_comm && tag > TAG) MPI(MPI_Comm_free(&comm));
    for (uint64_t i = 0; i < 4; i++) {
      int one[2] = {1, 1}, far[1] = {9};
      check("MPI_Pready on an inactive request", MPI_Pready(0, sends.request), MPI_ERR_REQUEST);
      check("MPI_Pready_range on an inactive request", MPI_Pready_range(0, 1, sends.request), MPI_ERR_REQUEST);
      check("MPI_Pready_list on an inactive request", MPI_Pready_list(1, one, sends.request), MPI_ERR_REQUEST);
      check("MPI_Pready on a receive", MPI_Pready(0, receives.request), MPI_ERR_REQUEST);
      check("MPI_Parrived on an inactive send", MPI_Parrived(sends.request, 0, &flag), MPI_ERR_REQUEST);
      side_prepare(&sends, i, (uint64_t)rank);
      side_prepare(&receives, i, (uint64_t)before);
      MPI(MPI_Start(&receives.request));
      MPI(MPI_Start(&sends.request));
      check("MPI_Start of an active send", MPI_Start(&sends.request), MPI_ERR_REQUEST);
      check("MPI_Start of an active receive", MPI_Start(&receives.request), MPI_ERR_REQUEST);
      MPI_Request copy = sends.request;
      check("MPI_Request_free of an active send", MPI_Request_free(&copy), MPI_ERR_REQUEST);
      copy = receives.request;
      check("MPI_Request_free of an active receive", MPI_Request_free(&copy), MPI_ERR_REQUEST);
      check("MPI_Cancel of a send", MPI_Cancel(&sends.request), MPI_ERR_REQUEST);
      check("MPI_Cancel of a receive", MPI_Cancel(&receives.request), MPI_ERR_REQUEST);
      MPI(MPI_Barrier(MPI_COMM_WORLD)); /* once its data has come, a receive may be freed */
      check("MPI_Pready on an active receive", MPI_Pready(0, receives.request), MPI_ERR_REQUEST);
      check("MPI_Pready(4) of 4", MPI_Pready(4, sends.request), MPI_ERR_ARG);
      check("MPI_Pready(-1)", MPI_Pready(-1, sends.request), MPI_ERR_ARG);
      check("MPI_Pready_range(2, 4) of 4", MPI_Pready_range(2, 4, sends.request), MPI_ERR_ARG);
      check("MPI_Pready_range(-1, 0)", MPI_Pready_range(-1, 0, sends.request), MPI_ERR_ARG);
      check("MPI_Pready_list of 9", MPI_Pready_list(1, far, sends.request), MPI_ERR_ARG);
      check("MPI_Parrived on a send", MPI_Parrived(sends.request, 0, &flag), MPI_ERR_REQUEST);
      check("MPI_Parrived(2) of 2", MPI_Parrived(receives.request, 2, &flag), MPI_ERR_ARG);
      check("MPI_Parrived(-1)", MPI_Parrived(receives.request, -1, &flag), MPI_ERR_ARG);
      /* What a refused range or list had already made ready is not said: learn it partition by partition. */
      for (int k = 0; k < 4; k++) (void)MPI_Pready(k, sends.request);
      num_handled = 0;
      check("MPI_Pready twice", MPI_Pready(2, sends.request), MPI_ERR_ARG);
      check("MPI_Pready_range over a ready one", MPI_Pready_range(0, 1, sends.request), MPI_ERR_ARG);
      check("MPI_Pready_list with a ready one", MPI_Pready_list(2, one, sends.request), MPI_ERR_ARG);
      MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
      MPI(MPI_Wait(&receives.request, MPI_STATUS_IGNORE));
      side_check(&receives, i, (uint64_t)before);
    }
    side_destroy(&sends);
    side_destroy(&receives);
  }
}

static void request_errors(const struct context *context) { every_request_error(context->world, false, expect_class); }

static void request_errors_handled(const struct context *context) {
  MPI_Comm comm = counting_comm(context);
  num_handled = 0;
  every_request_error(comm, false, expect_handled);
  MPI(MPI_Comm_free(&comm));
}

/* The requests keep the handler that their communicator had. */
static void request_errors_after_free(const struct context *context) {
  MPI_Comm comm = counting_comm(context);
  num_handled = 0;
  every_request_error(comm, true, expect_handled);
}

static void *make_and_free_a_request(void *unused) {
  char data[4];
  MPI_Request request;
  (void)unused;
  MPI(MPI_Precv_init(data, 1, 4, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_SELF, MPI_INFO_NULL, &request));
  MPI(MPI_Request_free(&request));
  return NULL;
}

static void wait_for_another_thread(MPI_Comm *comm, int *code, ...) {
  pthread_t other;
  int size = 0;
  num_handled++;
  last_handled = *code;
  MPI(MPI_Comm_size(*comm, &size));
  EXPECT(pthread_create(&other, NULL, make_and_free_a_request, NULL) == 0, "cannot create a thread");
  pthread_join(other, NULL);
}

static void handler_waits(const struct context *context) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  char data[4];
  MPI_Request request;
  if (context->level < MPI_THREAD_MULTIPLE) {
    case_skip("the thread level of this launch is too low");
    return;
  }
  MPI(MPI_Comm_dup(context->world, &comm));
  MPI(MPI_Comm_create_errhandler(wait_for_another_thread, &handler));
  MPI(MPI_Comm_set_errhandler(comm, handler));
  MPI(MPI_Errhandler_free(&handler));
  MPI(MPI_Precv_init(data, 1, 4, MPI_BYTE, MPI_PROC_NULL, TAG, comm, MPI_INFO_NULL, &request));
  num_handled = 0;
  expect_handled("MPI_Pready on a receive", MPI_Pready(0, request), MPI_ERR_REQUEST);
  MPI(MPI_Comm_free(&comm));
  expect_handled("MPI_Pready on a receive of a freed communicator", MPI_Pready(0, request), MPI_ERR_REQUEST);
  MPI(MPI_Request_free(&request));
}

static void foreign_requests(const struct context *context) {
  int word = 0, flag = 0;
  MPI_Request request = MPI_REQUEST_NULL, persistent;
  expect_class("MPI_Pready on a null request", MPI_Pready(0, request), MPI_ERR_REQUEST);
  MPI(MPI_Recv_init(&word, 1, MPI_INT, context->rank, TAG, context->world, &persistent));
  expect_class("MPI_Pready on a persistent request", MPI_Pready(0, persistent), MPI_ERR_REQUEST);
  MPI(MPI_Start(&persistent));
  expect_class("MPI_Parrived on a persistent request", MPI_Parrived(persistent, 0, &flag), MPI_ERR_REQUEST);
  MPI(MPI_Send(&word, 1, MPI_INT, context->rank, TAG, context->world));
  MPI(MPI_Wait(&persistent, MPI_STATUS_IGNORE));
  MPI(MPI_Request_free(&persistent));
}

static void null_after_free(const struct context *context) {
  char data[4];
  MPI_Request request;
  MPI(MPI_Precv_init(data, 1, 4, MPI_BYTE, context->rank, TAG, context->world, MPI_INFO_NULL, &request));
  MPI(MPI_Request_free(&request));
  EXPECT(request == MPI_REQUEST_NULL, "a freed request is not null");
  MPI(MPI_Psend_init(data, 1, 4, MPI_BYTE, context->rank, TAG, context->world, MPI_INFO_NULL, &request));
  MPI(MPI_Request_free(&request));
  EXPECT(request == MPI_REQUEST_NULL, "a freed request is not null");
}

/* The receiver gets the error, whosever total is larger and whatever becomes of errors elsewhere in the program. The sender
 * gets it too where the receiver's refusal has arrived before the transfer completes there, even before it starts. */
static void different_totals(const struct context *context) {
  static const struct {
    int sent, received;
  } counts[] = {{50, 100}, {100, 50}, {50000, 100000}, {200, 300000}, {17000, 66000}, {100, 200}};
  enum { PARTITIONS = 4, NUM_COUNTS = sizeof counts / sizeof *counts };
  if (context->rank > 1) return;
  unsigned char *data = calloc(PARTITIONS, 300000);
  MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
  for (int c = 0; c < NUM_COUNTS; c++) {
    MPI_Request request;
    if (context->rank == 0)
      MPI(MPI_Psend_init(data, PARTITIONS, counts[c].sent, MPI_BYTE, 1, TAG + c, context->world, MPI_INFO_NULL, &request));
    else MPI(MPI_Precv_init(data, PARTITIONS, counts[c].received, MPI_BYTE, 0, TAG + c, context->world, MPI_INFO_NULL, &request));
    int code = MPI_Start(&request);
    /* Where the sender has announced the transfer, either side may know when it starts. */
    const bool is_refused = code != MPI_SUCCESS;
    if (context->rank == 0 && !is_refused) MPI(MPI_Pready_range(0, PARTITIONS - 1, request));
    /* What MPI_Parrived has found stays an error of the wait: also where the MPI itself found a message too long for the first
     * of several segments (68000 bytes, of which the receiver expects 66000 first). */
    if (context->rank == 1 && c >= NUM_COUNTS - 2) {
      int flag = 0;
      while (code == MPI_SUCCESS && !flag) code = MPI_Parrived(request, 0, &flag);
      if (code != MPI_SUCCESS && !is_refused) expect_class("MPI_Parrived again", MPI_Parrived(request, 0, &flag), MPI_ERR_TRUNCATE);
    }
    if (!is_refused) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (context->rank == 1 || code != MPI_SUCCESS) expect_class("a transfer whose totals differ", code, MPI_ERR_TRUNCATE);
    MPI(MPI_Request_free(&request));
  }
  MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  free(data);
}

/* The sender has no canonical tags: its data is on the way when the receiver finds out, or it has the receiver's refusal when
 * it starts. MPI_Finalize must still return. */
static void different_totals_announced(const struct context *context) {
  enum { PARTITIONS = 4, LARGE = 250000, SMALLER_SENT = 0, SMALLER_RECEIVED, REFUSED_BEFORE_START, NUM_CASES };
  if (context->rank > 1) return;
  unsigned char *data = calloc(PARTITIONS, LARGE);
  char *const word = (char *)data;
  for (int c = 0; c < NUM_CASES; c++) {
    MPI_Request request;
    int code;
    if (context->rank == 0) {
      MPI(MPI_Psend_init(data, PARTITIONS, c ? LARGE / 2 : LARGE, MPI_BYTE, 1, 30000 + TAG, context->world, MPI_INFO_NULL,
                         &request));
      if (c == REFUSED_BEFORE_START) MPI(MPI_Recv(word, 1, MPI_CHAR, 1, TAG, context->world, MPI_STATUS_IGNORE));
      code = MPI_Start(&request);
      if (code == MPI_SUCCESS) {
        MPI(MPI_Pready_range(0, PARTITIONS - 1, request));
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
      if (code != MPI_SUCCESS) expect_class("a send whose total differs", code, MPI_ERR_TRUNCATE);
    } else {
      MPI(MPI_Precv_init(data, PARTITIONS, c ? LARGE : LARGE / 2, MPI_BYTE, 0, 30000 + TAG, context->world, MPI_INFO_NULL,
                         &request));
      code = MPI_Start(&request);
      if (c == REFUSED_BEFORE_START) MPI(MPI_Send(word, 1, MPI_CHAR, 0, TAG, context->world));
      if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
      expect_class("a receive whose total differs", code, MPI_ERR_TRUNCATE);
    }
    MPI(MPI_Request_free(&request));
  }
  free(data);
}

const struct test_case error_cases[] = {
    {"a_bad_argument_of_init_gives_its_error_class", init_errors, 0},
    {"a_bad_argument_of_init_calls_the_error_handler", init_errors_handled, 0},
    {"an_element_too_large_to_pack_is_an_error", huge_element, 0},
    {"init_on_no_communicator_is_an_error", null_communicator, 0},
    {"misuse_of_a_request_gives_its_error_class", request_errors, 0},
    {"misuse_of_a_request_calls_the_error_handler", request_errors_handled, 0},
    {"misuse_after_the_communicator_is_freed_calls_its_error_handler", request_errors_after_free, 0},
    {"an_error_handler_may_wait_for_another_thread_that_calls_mpi", handler_waits, 0},
    {"totals_that_differ_are_an_error_of_the_receive", different_totals, 0},
    {"totals_that_differ_without_canonical_tags_do_not_hold_up_finalize", different_totals_announced, 0},
    {"requests_of_other_kinds_are_refused", foreign_requests, 0},
    {"a_freed_request_is_null", null_after_free, 0},
    {0},
};
