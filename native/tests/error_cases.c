/* Misuse: the right error class, through the communicator's error handler, with the request still usable. */
#include <pthread.h>
#include <stdio.h>
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

/* Arguments that MPICH's own calls report, too, and sizes that no buffer has: handles, addresses and products. */
static void every_init_argument(MPI_Comm comm, check_fn *check) {
  enum { MANY = 1 << 20 };
  char data[64];
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Datatype uncommitted, gapped, far_apart;
  MPI(MPI_Type_contiguous(3, MPI_INT, &uncommitted));
  MPI(MPI_Type_vector(2, 1, 3, MPI_INT, &gapped));
  MPI(MPI_Type_commit(&gapped));
  MPI(MPI_Type_create_resized(MPI_BYTE, 0, (MPI_Aint)1 << 40, &far_apart));
  MPI(MPI_Type_commit(&far_apart));
  const struct {
    const char *what;
    int class;
    void *buffer;
    int partitions;
    MPI_Count count;
    MPI_Datatype type;
    int peer;
    MPI_Request *request;
  } rows[] = {
      {"a type that is not committed", MPI_ERR_TYPE, data, 2, 1, uncommitted, 0, &request},
      {"no element of a type that is not committed", MPI_ERR_TYPE, data, 2, 0, uncommitted, 0, &request},
      {"a type that is not committed, to MPI_PROC_NULL", MPI_ERR_TYPE, data, 2, 1, uncommitted, MPI_PROC_NULL, &request},
      {"no buffer", MPI_ERR_BUFFER, NULL, 2, 1, MPI_BYTE, 0, &request},
      {"no buffer for a derived type", MPI_ERR_BUFFER, NULL, 1, 1, gapped, 0, &request},
      {"no pointer to a request", MPI_ERR_ARG, data, 2, 1, MPI_BYTE, 0, NULL},
      {"no pointer to a request, to MPI_PROC_NULL", MPI_ERR_ARG, data, 2, 1, MPI_BYTE, MPI_PROC_NULL, NULL},
      {"2^64 bytes", MPI_ERR_COUNT, data, 4, (MPI_Count)1 << 62, MPI_BYTE, 0, &request},
      {"2^63 bytes", MPI_ERR_COUNT, data, 1, (MPI_Count)1 << 61, MPI_INT, 0, &request},
      {"2^61 bytes", MPI_ERR_COUNT, data, MANY, (MPI_Count)1 << 41, MPI_BYTE, 0, &request},
      {"2^54 bytes of a type with gaps", MPI_ERR_COUNT, data, MANY, (MPI_Count)1 << 31, gapped, 0, &request},
#if !defined(__SANITIZE_ADDRESS__) /* which ends a program that asks for so much */
      {"2^47 bytes of a type with gaps, which are packed", MPI_ERR_NO_MEM, data, MANY, (MPI_Count)1 << 24, gapped, 0, &request},
#endif
      {"2^40 bytes that span 2^80", MPI_ERR_COUNT, data, MANY, MANY, far_apart, 0, &request},
      {"2^20 bytes that span 2^60", MPI_ERR_COUNT, data, 1, MANY, far_apart, 0, &request},
  };
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    for (int sends = 0; sends < 2; sends++) {
      char what[200];
      snprintf(what, sizeof what, "MPI_P%s_init with %s", sends ? "send" : "recv", rows[r].what);
      const int code = sends ? MPI_Psend_init(rows[r].buffer, rows[r].partitions, rows[r].count, rows[r].type, rows[r].peer, TAG,
                                              comm, MPI_INFO_NULL, rows[r].request)
                             : MPI_Precv_init(rows[r].buffer, rows[r].partitions, rows[r].count, rows[r].type, rows[r].peer, TAG,
                                              comm, MPI_INFO_NULL, rows[r].request);
      check(what, code, rows[r].class);
    }
  }
  MPI(MPI_Type_free(&uncommitted));
  MPI(MPI_Type_free(&gapped));
  MPI(MPI_Type_free(&far_apart));
}

static void init_arguments(const struct context *context) { every_init_argument(context->world, expect_class); }

static void init_arguments_handled(const struct context *context) {
  MPI_Comm comm = counting_comm(context);
  num_handled = 0;
  every_init_argument(comm, expect_handled);
  MPI(MPI_Comm_free(&comm));
}

/* What looks similar and is correct. */
static void allowed_arguments(const struct context *context) {
  enum { NUM = 3 };
  const int next = (context->rank + 1) % context->num_ranks, before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  char byte = 0;
  int flag = 0;
  MPI_Datatype empty;
  MPI(MPI_Type_contiguous(0, MPI_INT, &empty));
  MPI(MPI_Type_commit(&empty));
  const struct {
    void *buffer;
    MPI_Count count;
    MPI_Datatype type;
    int is_null;
  } rows[NUM] = {{NULL, 0, MPI_BYTE, 0}, {NULL, 5, empty, 0}, {&byte, (MPI_Count)1 << 46, MPI_BYTE, 1}};
  for (int r = 0; r < NUM; r++) {
    MPI_Request both[2];
    MPI(MPI_Precv_init(rows[r].buffer, 3, rows[r].count, rows[r].type, rows[r].is_null ? MPI_PROC_NULL : before, TAG,
                       context->world, MPI_INFO_NULL, &both[0]));
    MPI(MPI_Psend_init(rows[r].buffer, 3, rows[r].count, rows[r].type, rows[r].is_null ? MPI_PROC_NULL : next, TAG, context->world,
                       MPI_INFO_NULL, &both[1]));
    MPI(MPI_Startall(2, both));
    MPI(MPI_Pready_list(0, NULL, both[1]));
    MPI(MPI_Pready_range(1, 1, both[1]));
    MPI(MPI_Pready_list(2, (int[]){2, 0}, both[1]));
    MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    MPI(MPI_Parrived(both[0], 2, &flag));
    EXPECT(flag, "a partition of an inactive request has not arrived");
    MPI(MPI_Request_free(&both[0]));
    MPI(MPI_Request_free(&both[1]));
  }
  flag = 0;
  MPI(MPI_Parrived(MPI_REQUEST_NULL, -7, &flag));
  EXPECT(flag, "a partition of a null request has not arrived");
  MPI(MPI_Type_free(&empty));
}

/* The MPIs' own calls do not read the info. */
static void useless_infos(const struct context *context) {
  char data[4];
  MPI_Info freed;
  MPI(MPI_Info_create(&freed));
  MPI(MPI_Info_set(freed, "someone_elses_key", "1"));
  const MPI_Info copy = freed, never_set = (MPI_Info)(intptr_t)0x5c000777, zero = (MPI_Info)(intptr_t)0;
  MPI(MPI_Info_free(&freed));
  for (int i = 0; i < 3; i++) {
    MPI_Request request;
    MPI(MPI_Psend_init(data, 1, 4, MPI_BYTE, context->rank, TAG, context->world, (const MPI_Info[]){copy, never_set, zero}[i],
                       &request));
    MPI(MPI_Request_free(&request));
  }
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

/* Lists, ranges and pointers at every state of a pair of requests. Nothing of a refused list or range is made ready. */
static void every_request_argument(MPI_Comm comm, check_fn *check) {
  int rank = 0, num_ranks = 1, flag = 0, list[3] = {0, 99, 1}, twice[3] = {0, 1, -1};
  MPI(MPI_Comm_rank(comm, &rank));
  MPI(MPI_Comm_size(comm, &num_ranks));
  const int next = (rank + 1) % num_ranks, before = (rank + num_ranks - 1) % num_ranks;
  for (int tag = TAG; tag <= TAG + 30000; tag += 30000) {
    struct side sends, receives;
    side_send_init(&sends, (struct shape){4, 25, MPI_BYTE}, next, tag, comm);
    side_recv_init(&receives, (struct shape){2, 50, MPI_BYTE}, before, tag, comm);
    for (uint64_t i = 0; i < 4; i++) {
      for (int is_active = 0; is_active < 2; is_active++) {
        MPI_Request r = receives.request, s = sends.request;
        const int of_send = is_active ? MPI_ERR_ARG : MPI_ERR_REQUEST;
        if (is_active) {
          side_prepare(&sends, i, (uint64_t)rank);
          side_prepare(&receives, i, (uint64_t)before);
          MPI_Request with_null[2] = {r, MPI_REQUEST_NULL}, with_active[2] = {s, r};
          EXPECT(MPI_Startall(2, with_null) != MPI_SUCCESS, "a null request can be started");
          MPI(MPI_Start(&r));
          num_handled = 0;
          check("MPI_Startall with an active receive", MPI_Startall(2, with_active), MPI_ERR_REQUEST);
          MPI(MPI_Start(&s));
        }
        check("MPI_Pready_range(3, 1)", MPI_Pready_range(3, 1, s), of_send);
        check("MPI_Pready_range(1, 0)", MPI_Pready_range(1, 0, s), of_send);
        check("MPI_Pready_range(0, INT_MAX)", MPI_Pready_range(0, INT32_MAX, s), of_send);
        check("MPI_Pready_range(INT_MIN, 0)", MPI_Pready_range(INT32_MIN, 0, s), of_send);
        check("MPI_Pready_list of 0, 99 and 1", MPI_Pready_list(3, list, s), of_send);
        check("MPI_Pready_list of 0, 1 and -1", MPI_Pready_list(3, twice, s), of_send);
        check("MPI_Pready_list of -1 partitions", MPI_Pready_list(-1, list, s), of_send);
        check("MPI_Pready_list of INT_MIN partitions", MPI_Pready_list(INT32_MIN, NULL, s), of_send);
        check("MPI_Pready_list without a list", MPI_Pready_list(2, NULL, s), of_send);
        check("MPI_Pready_range(1, 0) of a receive", MPI_Pready_range(1, 0, r), MPI_ERR_REQUEST);
        check("MPI_Pready_list of -1 partitions of a receive", MPI_Pready_list(-1, list, r), MPI_ERR_REQUEST);
        check("MPI_Pready_list without a list of a receive", MPI_Pready_list(2, NULL, r), MPI_ERR_REQUEST);
        check("MPI_Parrived without a flag", MPI_Parrived(r, 0, NULL), MPI_ERR_ARG);
        check("MPI_Parrived(2) of 2 without a flag", MPI_Parrived(r, 2, NULL), MPI_ERR_ARG);
        check("MPI_Parrived(INT_MAX)", MPI_Parrived(r, INT32_MAX, &flag), MPI_ERR_ARG);
        check("MPI_Parrived of a send without a flag", MPI_Parrived(s, 0, NULL), MPI_ERR_REQUEST);
      }
      MPI(MPI_Pready_list(2, (int[]){1, 0}, sends.request));
      MPI(MPI_Pready_range(2, 3, sends.request));
      MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
      MPI(MPI_Wait(&receives.request, MPI_STATUS_IGNORE));
      side_check(&receives, i, (uint64_t)before);
    }
    side_destroy(&sends);
    side_destroy(&receives);
  }
}

static void request_arguments(const struct context *context) { every_request_argument(context->world, expect_class); }

static void request_arguments_handled(const struct context *context) {
  MPI_Comm comm = counting_comm(context);
  num_handled = 0;
  every_request_argument(comm, expect_handled);
  MPI(MPI_Comm_free(&comm));
}

/* Each is an error, and leaves the transfer as it is. */
static void null_pointers(const struct context *context) {
  const int next = (context->rank + 1) % context->num_ranks, before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  const bool has_status = MPI_STATUS_IGNORE != NULL; /* else NULL is allowed for a status */
  struct side sends, receives;
  side_send_init(&sends, (struct shape){4, 25, MPI_BYTE}, next, TAG, context->world);
  side_recv_init(&receives, (struct shape){2, 50, MPI_BYTE}, before, TAG, context->world);
  for (uint64_t i = 0; i < 2; i++) {
    int flag, index, indices[2];
    MPI_Request *const no_request = NULL;
    int *const nowhere = NULL;
    side_prepare(&sends, i, (uint64_t)context->rank);
    side_prepare(&receives, i, (uint64_t)before);
    MPI_Request both[2] = {receives.request, sends.request};
    MPI(MPI_Startall(2, both));
    pready_all(sends.request, 4, FORWARD, 0);
/* The MPI reports what is not about a request of ours, by a class of its own. */
#define REFUSED(call) EXPECT((call) != MPI_SUCCESS, "%s is no error", #call)
#define INVALID(call) expect_class(#call, call, MPI_ERR_ARG)
    REFUSED(MPI_Start(no_request));
    INVALID(MPI_Startall(2, no_request));
    REFUSED(MPI_Startall(-1, both));
    REFUSED(MPI_Cancel(no_request));
    REFUSED(MPI_Request_free(no_request));
    REFUSED(MPI_Wait(no_request, MPI_STATUS_IGNORE));
    INVALID(MPI_Waitall(2, no_request, MPI_STATUSES_IGNORE));
    REFUSED(MPI_Waitall(-1, both, MPI_STATUSES_IGNORE));
    INVALID(MPI_Waitany(2, no_request, &index, MPI_STATUS_IGNORE));
    INVALID(MPI_Waitany(2, both, nowhere, MPI_STATUS_IGNORE));
    INVALID(MPI_Waitsome(2, no_request, &index, indices, MPI_STATUSES_IGNORE));
    INVALID(MPI_Waitsome(2, both, nowhere, indices, MPI_STATUSES_IGNORE));
    INVALID(MPI_Waitsome(2, both, &index, nowhere, MPI_STATUSES_IGNORE));
    REFUSED(MPI_Test(no_request, &flag, MPI_STATUS_IGNORE));
    INVALID(MPI_Test(&both[0], nowhere, MPI_STATUS_IGNORE));
    INVALID(MPI_Testall(2, no_request, &flag, MPI_STATUSES_IGNORE));
    INVALID(MPI_Testall(2, both, nowhere, MPI_STATUSES_IGNORE));
    INVALID(MPI_Testany(2, no_request, &index, &flag, MPI_STATUS_IGNORE));
    INVALID(MPI_Testany(2, both, nowhere, &flag, MPI_STATUS_IGNORE));
    INVALID(MPI_Testany(2, both, &index, nowhere, MPI_STATUS_IGNORE));
    INVALID(MPI_Testsome(2, no_request, &index, indices, MPI_STATUSES_IGNORE));
    INVALID(MPI_Testsome(2, both, nowhere, indices, MPI_STATUSES_IGNORE));
    INVALID(MPI_Testsome(2, both, &index, nowhere, MPI_STATUSES_IGNORE));
    INVALID(MPI_Request_get_status(both[0], nowhere, MPI_STATUS_IGNORE));
    if (has_status) {
      INVALID(MPI_Wait(&both[0], NULL));
      INVALID(MPI_Waitall(2, both, NULL));
      INVALID(MPI_Waitany(2, both, &index, NULL));
      INVALID(MPI_Waitsome(2, both, &index, indices, NULL));
      INVALID(MPI_Test(&both[0], &flag, NULL));
      INVALID(MPI_Testall(2, both, &flag, NULL));
      INVALID(MPI_Testany(2, both, &index, &flag, NULL));
      INVALID(MPI_Testsome(2, both, &index, indices, NULL));
      INVALID(MPI_Request_get_status(both[0], &flag, NULL));
    }
#undef INVALID
#undef REFUSED
    MPI(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    side_check(&receives, i, (uint64_t)before);
  }
  side_destroy(&sends);
  side_destroy(&receives);
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
  expect_class("MPI_Pready_range on a null request", MPI_Pready_range(1, 0, request), MPI_ERR_REQUEST);
  expect_class("MPI_Pready_list on a null request", MPI_Pready_list(2, NULL, request), MPI_ERR_REQUEST);
  expect_class("MPI_Parrived on a null request without a flag", MPI_Parrived(request, 0, NULL), MPI_ERR_ARG);
  expect_class("MPI_Pready_range on a persistent request", MPI_Pready_range(0, 0, persistent), MPI_ERR_REQUEST);
  expect_class("MPI_Pready_list on a persistent request", MPI_Pready_list(1, &flag, persistent), MPI_ERR_REQUEST);
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
  /* A message too large to be buffered would hold up a sender whose receiver has found the error in another one; how many there
   * are in a first start is known where the costs are given. */
  static const struct {
    int sent, received;
    bool is_large;
  } counts[] = {{50, 100, false},     {100, 50, false},     {20000, 40000, true},
                {200, 300000, false}, {17000, 66000, true}, {100, 200, false}};
  enum { PARTITIONS = 4, NUM_COUNTS = sizeof counts / sizeof *counts };
  const bool knows_costs = getenv("EARLYBIRD_COSTS") != NULL;
  if (context->rank > 1) return;
  unsigned char *data = calloc(PARTITIONS, 300000);
  MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
  for (int c = 0; c < NUM_COUNTS; c++) {
    MPI_Request request;
    if (counts[c].is_large && !knows_costs) continue;
    if (context->rank == 0)
      MPI(MPI_Psend_init(data, PARTITIONS, counts[c].sent, MPI_BYTE, 1, TAG + c, context->world, MPI_INFO_NULL, &request));
    else MPI(MPI_Precv_init(data, PARTITIONS, counts[c].received, MPI_BYTE, 0, TAG + c, context->world, MPI_INFO_NULL, &request));
    int code = MPI_Start(&request);
    /* Where the sender has announced the transfer, either side may know when it starts. */
    const bool is_refused = code != MPI_SUCCESS;
    if (context->rank == 0 && !is_refused) MPI(MPI_Pready_range(0, PARTITIONS - 1, request));
    /* What MPI_Parrived has found stays an error of the wait: also where the MPI itself found a message too long for the first
     * of several segments (68000 bytes, of which the receiver expects less than 66000 first). */
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
    {"a_handle_an_address_or_a_size_that_cannot_be_gives_its_error_class", init_arguments, 0},
    {"a_handle_an_address_or_a_size_that_cannot_be_calls_the_error_handler", init_arguments_handled, 0},
    {"null_buffers_and_lists_without_elements_are_correct", allowed_arguments, 0},
    {"an_info_that_is_freed_or_none_is_not_read", useless_infos, 0},
    {"an_element_too_large_to_pack_is_an_error", huge_element, 0},
    {"init_on_no_communicator_is_an_error", null_communicator, 0},
    {"misuse_of_a_request_gives_its_error_class", request_errors, 0},
    {"misuse_of_a_request_calls_the_error_handler", request_errors_handled, 0},
    {"misuse_after_the_communicator_is_freed_calls_its_error_handler", request_errors_after_free, 0},
    {"lists_ranges_and_pointers_of_a_request_give_their_error_class", request_arguments, 0},
    {"lists_ranges_and_pointers_of_a_request_call_the_error_handler", request_arguments_handled, 0},
    {"a_null_pointer_is_an_error_and_leaves_a_transfer_as_it_is", null_pointers, 0},
    {"an_error_handler_may_wait_for_another_thread_that_calls_mpi", handler_waits, 0},
    {"totals_that_differ_are_an_error_of_the_receive", different_totals, 0},
    {"totals_that_differ_without_canonical_tags_do_not_hold_up_finalize", different_totals_announced, 0},
    {"requests_of_other_kinds_are_refused", foreign_requests, 0},
    {"a_freed_request_is_null", null_after_free, 0},
    {0},
};
