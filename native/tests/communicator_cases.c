/* Communicators of every constructor, freed early, by the hundred; ordinary messages and attributes stay apart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

static void ring_on(MPI_Comm comm, MPI_Comm *free_comm) {
  ring_run(&(struct ring){.comm = comm,
                          .sends = {6, 100, MPI_INT},
                          .receives = {4, 150, MPI_INT},
                          .tag = 11,
                          .iterations = 6,
                          .order = RANDOM,
                          .free_comm = free_comm});
}

/* Uses a new communicator, again after a channel of it was freed, then frees it before the data moves. */
static void use(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return;
  MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  ring_on(comm, NULL);
  MPI_Comm copy = comm;
  ring_on(comm, &copy);
}

static void dup(const struct context *context) {
  MPI_Comm made, nested;
  MPI(MPI_Comm_dup(context->world, &made));
  MPI(MPI_Comm_dup(made, &nested));
  use(made);
  use(nested);
  MPI_Info info;
  MPI(MPI_Info_create(&info));
  MPI(MPI_Info_set(info, "an_unknown_key", "value"));
  MPI(MPI_Comm_dup_with_info(context->world, info, &made));
  MPI(MPI_Info_free(&info));
  use(made);
}

static void split(const struct context *context) {
  MPI_Comm made;
  MPI(MPI_Comm_split(context->world, context->rank % 2, -context->rank, &made));
  use(made);
  MPI(MPI_Comm_split(context->world, context->rank == 0 ? MPI_UNDEFINED : 1, 0, &made));
  use(made);
  MPI(MPI_Comm_split_type(context->world, MPI_COMM_TYPE_SHARED, context->rank, MPI_INFO_NULL, &made));
  use(made);
}

static void create(const struct context *context) {
  MPI_Group world, some;
  MPI_Comm made;
  int ranks[64];
  for (int r = 0; r < context->num_ranks; r++) ranks[r] = context->num_ranks - 1 - r;
  MPI(MPI_Comm_group(context->world, &world));
  MPI(MPI_Group_incl(world, context->num_ranks, ranks, &some));
  MPI(MPI_Comm_create(context->world, some, &made));
  use(made);
  MPI(MPI_Group_free(&some));
  MPI(MPI_Group_incl(world, context->num_ranks - 1, ranks, &some)); /* without rank 0 */
  MPI(MPI_Comm_create(context->world, some, &made));
  use(made);
  if (context->rank > 0) {
    /* Collective over the group only: rank 0 makes no call at all. */
    MPI(MPI_Comm_create_group(context->world, some, 5, &made));
    use(made);
  }
  MPI(MPI_Group_free(&some));
  MPI(MPI_Group_free(&world));
}

static void topologies(const struct context *context) {
  MPI_Comm made, line;
  int dims[2] = {0, 0}, periods[2] = {1, 1}, remain[2] = {0, 1};
  MPI(MPI_Dims_create(context->num_ranks, 2, dims));
  MPI(MPI_Cart_create(context->world, 2, dims, periods, 0, &made));
  MPI(MPI_Cart_sub(made, remain, &line));
  use(made);
  use(line);
  int weight = 1, degrees = 1, targets = (context->rank + 1) % context->num_ranks;
  int sources = (context->rank + context->num_ranks - 1) % context->num_ranks;
  MPI(MPI_Dist_graph_create(context->world, 1, &context->rank, &degrees, &targets, &weight, MPI_INFO_NULL, 0, &made));
  use(made);
  MPI(MPI_Dist_graph_create_adjacent(context->world, 1, &sources, &weight, 1, &targets, &weight, MPI_INFO_NULL, 0, &made));
  use(made);
  int index[64], edges[64];
  for (int r = 0; r < context->num_ranks; r++) {
    index[r] = r + 1;
    edges[r] = (r + 1) % context->num_ranks;
  }
  MPI(MPI_Graph_create(context->world, context->num_ranks, index, edges, 0, &made));
  use(made);
}

static void idup(const struct context *context) {
  MPI_Comm first, second;
  MPI_Request requests[2];
  MPI(MPI_Comm_idup(context->world, &first, &requests[0]));
  MPI(MPI_Comm_idup(context->world, &second, &requests[1]));
  MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  MPI_Comm third;
  MPI(MPI_Comm_idup(first, &third, &requests[0])); /* of a communicator that came from the same call */
  int flag = 0;
  while (!flag && !case_failed()) MPI(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
  use(second);
  use(first);
  use(third);
#if MPI_AT_LEAST(4, 0)
  MPI(MPI_Comm_idup_with_info(context->world, MPI_INFO_NULL, &first, &requests[0]));
  MPI(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  use(first);
#endif
}

/* The parent is freed, and the channel is made, while the duplicate of it is the only one left. */
static void idup_of_freed(const struct context *context) {
  MPI_Comm parent, child;
  MPI_Request request;
  MPI(MPI_Comm_dup(context->world, &parent));
  MPI(MPI_Comm_idup(parent, &child, &request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  MPI(MPI_Comm_free(&parent));
  use(child);
}

static void merged(const struct context *context) {
  MPI_Comm half, inter, made, dup;
  const int side = context->rank % 2;
  MPI(MPI_Comm_split(context->world, side, 0, &half));
  MPI(MPI_Intercomm_create(half, 0, context->world, 1 - side, 12, &inter));
  MPI(MPI_Intercomm_merge(inter, side, &made));
  MPI(MPI_Comm_dup(inter, &dup));
  MPI(MPI_Comm_free(&dup));
  MPI(MPI_Comm_free(&inter));
  use(made);
  use(half);
}

/* Every rank of one side sends to the rank of the other side that has its number, in both directions. */
static void intercommunicator(const struct context *context) {
  enum { PARTITIONS = 4, INTS = 300, STARTS = 3 };
  MPI_Comm half, inter, duplicate;
  const int side = context->rank % 2;
  MPI(MPI_Comm_split(context->world, side, 0, &half));
  MPI(MPI_Intercomm_create(half, 0, context->world, 1 - side, 12, &inter));
  MPI(MPI_Comm_dup(inter, &duplicate));
  int here = 0, there = 0;
  MPI(MPI_Comm_rank(inter, &here));
  MPI(MPI_Comm_remote_size(inter, &there));
  const MPI_Comm comms[] = {inter, duplicate};
  for (int c = 0; c < 2 && here < there && !case_failed(); c++) {
    static int sent[PARTITIONS * INTS], received[PARTITIONS * INTS];
    MPI_Request both[2];
    MPI_Status statuses[2];
    MPI(MPI_Psend_init(sent, PARTITIONS, INTS, MPI_INT, here, 13, comms[c], MPI_INFO_NULL, &both[0]));
    MPI(MPI_Precv_init(received, PARTITIONS, INTS, MPI_INT, here, 13, comms[c], MPI_INFO_NULL, &both[1]));
    for (int start = 0; start < STARTS && !case_failed(); start++) {
      for (int k = 0; k < PARTITIONS * INTS; k++) sent[k] = 100000 * (side + 1) + 10000 * c + 3 * k + start;
      memset(received, 0, sizeof received);
      MPI(MPI_Startall(2, both));
      MPI(MPI_Pready_range(0, PARTITIONS - 1, both[0]));
      MPI(MPI_Waitall(2, both, statuses));
      EXPECT(statuses[1].MPI_SOURCE == here && statuses[1].MPI_TAG == 13, "the status says source %d, tag %d",
             statuses[1].MPI_SOURCE, statuses[1].MPI_TAG);
      for (int k = 0; k < PARTITIONS * INTS && !case_failed(); k++)
        EXPECT(received[k] == 100000 * (2 - side) + 10000 * c + 3 * k + start, "item %d of start %d is %d", k, start, received[k]);
    }
    MPI(MPI_Request_free(&both[0]));
    MPI(MPI_Request_free(&both[1]));
  }
  MPI(MPI_Comm_free(&duplicate));
  MPI(MPI_Comm_free(&inter));
  MPI(MPI_Comm_free(&half));
}

static void session(const struct context *context) {
#if defined(OPEN_MPI)
  (void)context;
  case_skip("Open MPI 5.0.11 hangs in its own code for them");
#elif MPI_AT_LEAST(4, 0)
  MPI_Session session;
  MPI_Group group;
  MPI_Comm made;
  MPI(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  MPI(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
  MPI(MPI_Comm_create_from_group(group, "earlybird.tests", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  int sent = context->rank, received = -1;
  MPI_Request both[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  /* Made and freed only, as above. */
  const int send_code = MPI_Psend_init(&sent, 1, 1, MPI_INT, next, 14, made, MPI_INFO_NULL, &both[0]);
  const int receive_code = MPI_Precv_init(&received, 1, 1, MPI_INT, before, 14, made, MPI_INFO_NULL, &both[1]);
  EXPECT((send_code == MPI_SUCCESS) == (receive_code == MPI_SUCCESS), "one side is refused: codes %d and %d", send_code,
         receive_code);
  for (int i = 0; i < 2; i++)
    if (both[i] != MPI_REQUEST_NULL) MPI(MPI_Request_free(&both[i]));
  MPI(MPI_Comm_free(&made));
  MPI(MPI_Group_free(&group));
  MPI(MPI_Session_finalize(&session));
#else
  (void)context;
  case_skip("this MPI says that it is older than MPI 4.0");
#endif
}

/* Nothing of ours may be seen or swallowed by ANY_SOURCE, ANY_TAG on the communicator of the transfer. */
static void isolation(const struct context *context) {
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  for (int tag = 3; tag <= 30000; tag *= 10000) {
    int words[2] = {-1, -1}, flag = 0;
    MPI_Request any[2];
    for (int i = 0; i < 2; i++)
      MPI(MPI_Irecv(&words[i], 1, MPI_INT, MPI_ANY_SOURCE, i ? tag : MPI_ANY_TAG, context->world, &any[i]));
    struct side sends, receives;
    side_send_init(&sends, (struct shape){4, 1000, MPI_BYTE}, next, tag, context->world);
    side_recv_init(&receives, (struct shape){4, 1000, MPI_BYTE}, before, tag, context->world);
    for (uint64_t i = 0; i < 10; i++) {
      side_prepare(&sends, i, (uint64_t)context->rank);
      side_prepare(&receives, i, (uint64_t)before);
      MPI(MPI_Start(&sends.request));
      pready_all(sends.request, 4, REVERSE, 0);
      MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, context->world, &flag, MPI_STATUS_IGNORE));
      EXPECT(!flag, "a probe sees a partitioned transfer");
      MPI(MPI_Start(&receives.request));
      MPI(MPI_Wait(&receives.request, MPI_STATUS_IGNORE));
      MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
      side_check(&receives, i, (uint64_t)before);
      MPI(MPI_Barrier(context->world));
    }
    for (int i = 0; i < 2; i++) {
      MPI(MPI_Test(&any[i], &flag, MPI_STATUS_IGNORE));
      EXPECT(!flag, "a receive with a wildcard took a partitioned transfer");
    }
    MPI(MPI_Barrier(context->world));
    const int first = 100 + context->rank, second = 200 + context->rank;
    MPI(MPI_Send(&first, 1, MPI_INT, next, tag, context->world));
    MPI(MPI_Send(&second, 1, MPI_INT, next, tag, context->world));
    MPI_Status statuses[2];
    MPI(MPI_Waitall(2, any, statuses));
    EXPECT(words[0] == 100 + before && words[1] == 200 + before, "the ordinary messages are %d and %d", words[0], words[1]);
    EXPECT(statuses[0].MPI_TAG == tag && statuses[0].MPI_SOURCE == before, "status has tag %d, source %d", statuses[0].MPI_TAG,
           statuses[0].MPI_SOURCE);
    side_destroy(&sends);
    side_destroy(&receives);
    MPI(MPI_Barrier(context->world));
  }
}

/* A partitioned receive takes no ordinary message of its source and tag. */
static void ordinary_messages(const struct context *context) {
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  struct side sends, receives;
  MPI_Request ordinary;
  int sent = context->rank, received = -1;
  side_recv_init(&receives, (struct shape){1, 4, MPI_BYTE}, before, 21, context->world);
  side_send_init(&sends, (struct shape){1, 4, MPI_BYTE}, next, 21, context->world);
  for (uint64_t i = 0; i < 6; i++) {
    side_prepare(&sends, i, (uint64_t)context->rank);
    side_prepare(&receives, i, (uint64_t)before);
    MPI(MPI_Start(&receives.request));
    MPI(MPI_Isend(&sent, 1, MPI_INT, next, 21, context->world, &ordinary));
    MPI(MPI_Start(&sends.request));
    MPI(MPI_Pready(0, sends.request));
    MPI(MPI_Wait(&receives.request, MPI_STATUS_IGNORE));
    side_check(&receives, i, (uint64_t)before);
    MPI(MPI_Recv(&received, 1, MPI_INT, before, 21, context->world, MPI_STATUS_IGNORE));
    EXPECT(received == before, "the ordinary message is %d", received);
    MPI(MPI_Wait(&ordinary, MPI_STATUS_IGNORE));
    MPI(MPI_Wait(&sends.request, MPI_STATUS_IGNORE));
  }
  side_destroy(&sends);
  side_destroy(&receives);
}

static int copies, deletions;

static int count_copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
  (void)comm, (void)keyval, (void)extra;
  copies++;
  *(void **)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}

static int count_deletion(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)comm, (void)keyval, (void)value, (void)extra;
  deletions++;
  return MPI_SUCCESS;
}

static void attributes(const struct context *context) {
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Comm parent, made;
  MPI_Request request;
  copies = deletions = 0;
  MPI(MPI_Comm_create_keyval(count_copy, count_deletion, &keyval, NULL));
  MPI(MPI_Comm_dup(context->world, &parent));
  MPI(MPI_Comm_set_attr(parent, keyval, &copies));
  ring_on(parent, NULL);
  EXPECT(copies == 0, "a partitioned transfer ran %d attribute copy callbacks", copies);
  MPI(MPI_Comm_split(parent, 0, 0, &made));
  ring_on(made, NULL);
  MPI(MPI_Comm_free(&made));
  EXPECT(copies == 0 && deletions == 0, "MPI_Comm_split ran %d copy and %d delete callbacks", copies, deletions);
  MPI(MPI_Comm_dup(parent, &made));
  ring_on(made, NULL);
  EXPECT(copies == 1, "MPI_Comm_dup ran %d attribute copy callbacks", copies);
  MPI(MPI_Comm_free(&made));
  EXPECT(deletions == 1, "MPI_Comm_free ran %d attribute delete callbacks", deletions);
  MPI(MPI_Comm_idup(parent, &made, &request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  ring_on(made, NULL);
  EXPECT(copies == 2, "MPI_Comm_idup ran %d attribute copy callbacks", copies - 1);
  MPI(MPI_Comm_free(&made));
  MPI(MPI_Comm_free(&parent));
  EXPECT(deletions == 3 && copies == 2, "%d copies and %d deletions in total", copies, deletions);
  MPI(MPI_Comm_free_keyval(&keyval));
}

static void many_communicators(const struct context *context) {
  enum { NUM_COMMS = 1500 };
  if (context->num_ranks > 2) {
    case_skip("two ranks show it");
    return;
  }
  MPI_Comm *made = malloc(sizeof *made * NUM_COMMS);
  int num_made = 0;
  for (; num_made < NUM_COMMS && !case_failed(); num_made++) {
    MPI(MPI_Comm_dup(context->world, &made[num_made]));
    if (num_made % 64 == 0) ring_on(made[num_made], NULL);
  }
  if (!case_failed()) ring_on(made[NUM_COMMS - 1], NULL);
  for (int i = 0; i < num_made; i++) MPI(MPI_Comm_free(&made[i]));
  free(made);
}

/* Contexts must come back: more communicators than an MPI has, one after another. */
static void communicators_come_back(const struct context *context) {
  if (context->num_ranks > 2) {
    case_skip("two ranks show it");
    return;
  }
  for (int i = 0; i < 2500 && !case_failed(); i++) {
    MPI_Comm made;
    MPI(MPI_Comm_dup(context->world, &made));
    if (i % 100 == 0) {
      MPI_Comm copy = made;
      ring_on(made, &copy);
    } else {
      MPI(MPI_Comm_free(&made));
    }
  }
}

/* Same peers and tag on two communicators; started in opposite orders. */
static void apart(const struct context *context) {
  enum { NUM_COMMS = 4 };
  const int next = (context->rank + 1) % context->num_ranks;
  const int before = (context->rank + context->num_ranks - 1) % context->num_ranks;
  MPI_Comm made[NUM_COMMS];
  struct side sends[NUM_COMMS], receives[NUM_COMMS];
  for (int c = 0; c < NUM_COMMS; c++) MPI(MPI_Comm_dup(context->world, &made[c]));
  for (int c = 0; c < NUM_COMMS; c++) {
    side_send_init(&sends[c], (struct shape){3, 40, MPI_BYTE}, next, 15, made[c]);
    side_recv_init(&receives[NUM_COMMS - 1 - c], (struct shape){2, 60, MPI_BYTE}, before, 15, made[NUM_COMMS - 1 - c]);
  }
  for (uint64_t i = 0; i < 6; i++) {
    for (int c = 0; c < NUM_COMMS; c++) {
      side_prepare(&receives[c], i, (uint64_t)c);
      MPI(MPI_Start(&receives[c].request));
    }
    for (int c = NUM_COMMS - 1; c >= 0; c--) {
      side_prepare(&sends[c], i, (uint64_t)c);
      MPI(MPI_Start(&sends[c].request));
      pready_all(sends[c].request, 3, RANDOM, i);
    }
    for (int c = 0; c < NUM_COMMS; c++) {
      MPI(MPI_Wait(&receives[c].request, MPI_STATUS_IGNORE));
      MPI(MPI_Wait(&sends[c].request, MPI_STATUS_IGNORE));
      side_check(&receives[c], i, (uint64_t)c);
    }
  }
  for (int c = 0; c < NUM_COMMS; c++) {
    side_destroy(&sends[c]);
    side_destroy(&receives[c]);
    MPI(MPI_Comm_free(&made[c]));
  }
}

const struct test_case communicator_cases[] = {
    {"duplicated_communicators_deliver_and_may_be_freed_after_init", dup, 0},
    {"split_communicators_deliver_and_may_be_freed_after_init", split, 0},
    {"created_and_group_collective_communicators_deliver", create, 0},
    {"topology_communicators_deliver", topologies, 0},
    {"nonblocking_duplicates_deliver", idup, 0},
    {"a_nonblocking_duplicate_outlives_its_parent", idup_of_freed, 0},
    {"merged_intercommunicators_deliver", merged, 0},
    {"intercommunicators_deliver", intercommunicator, 0},
    {"a_communicator_of_a_session_is_left_to_the_MPI_or_refused", session, 0},
    {"communicators_with_equal_peers_and_tags_stay_apart", apart, 0},
    {"wildcard_receives_and_probes_see_nothing_of_a_transfer", isolation, 0},
    {"a_partitioned_receive_takes_no_ordinary_message", ordinary_messages, 0},
    {"attribute_callbacks_run_for_the_users_calls_only", attributes, 0},
    {"fifteen_hundred_communicators_can_live", many_communicators, 30},
    {"freed_communicators_give_their_contexts_back", communicators_come_back, 30},
    {0},
};
