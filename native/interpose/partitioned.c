/* MPI_Psend_init, MPI_Precv_init, MPI_Pready and its variants, MPI_Parrived. */
#include <dlfcn.h>
#include <stdio.h>

#include "interpose/complete.h"
#include "interpose/interpose.h"
#include "interpose/objects/fortran_bindings.h"
#include "interpose/objects/loaded.h"
#include "partitioned/domain/domain.h"

/* The MPI's own call, where it has it, for communicators and ranks that the library does not serve. Searched for while the
 * program runs, because an MPI may be loaded after us. */
static void *own(void **known, const char *name) {
  void *found = __atomic_load_n(known, __ATOMIC_RELAXED);
  if (found) return found;
  found = dlsym(RTLD_DEFAULT, name);
  __atomic_store_n(known, found, __ATOMIC_RELAXED);
  return found;
}

typedef int psend_init_fn(const void *, int, EB_PARTITIONED_COUNT, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *);
typedef int precv_init_fn(void *, int, EB_PARTITIONED_COUNT, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *);
typedef int pready_fn(int, MPI_Request);
typedef int pready_range_fn(int, int, MPI_Request);
typedef int pready_list_fn(int, const int *, MPI_Request);
typedef int parrived_fn(MPI_Request, int, int *);

#define OWN(type, name)               \
  static type *own_##type(void) {     \
    static void *known;               \
    return (type *)own(&known, name); \
  }
OWN(psend_init_fn, "PMPI_Psend_init")
OWN(precv_init_fn, "PMPI_Precv_init")
OWN(pready_fn, "PMPI_Pready")
OWN(pready_range_fn, "PMPI_Pready_range")
OWN(pready_list_fn, "PMPI_Pready_list")
OWN(parrived_fn, "PMPI_Parrived")
#undef OWN

static int refuse_communicator(MPI_Comm comm) {
  const int code = MPI_ERR_UNSUPPORTED_OPERATION;
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

static int refuse_null_communicator(void) {
  return eb_raise(NULL, MPI_ERR_COMM, "the communicator of a partitioned transfer is MPI_COMM_NULL");
}

/* Can data be sent by the type? Only the MPI knows which handles are valid and which types are committed, and it checks both when
 * it sends, which to MPI_PROC_NULL does nothing else. */
static bool is_usable(MPI_Datatype type) {
  const char unread = 0;
  int error_class = MPI_SUCCESS;
  const int rc = PMPI_Send(&unread, 1, type, MPI_PROC_NULL, 0, eb_world.self);
  return rc == MPI_SUCCESS || (PMPI_Error_class(rc, &error_class) == MPI_SUCCESS && error_class != MPI_ERR_TYPE);
}

/* NULL is MPI_BOTTOM, too, from which a type may lead to any address but 0. The type must be usable. */
static bool is_missing(const void *buffer, MPI_Count count, MPI_Datatype type) {
  MPI_Count size;
  MPI_Aint true_lower_bound, true_extent;
  return !buffer && count > 0 && PMPI_Type_size_x(type, &size) == MPI_SUCCESS && size > 0 &&
         PMPI_Type_get_true_extent(type, &true_lower_bound, &true_extent) == MPI_SUCCESS && true_lower_bound == 0;
}

/* Checks the arguments as MPI 4.1 section 4.2.1 requires; the message of the first error, or NULL. */
static const char *find_error(const eb_view *view, const eb_channel_arguments *given, const MPI_Request *request,
                              int *error_class) {
#define ERROR_IF(condition, class, sentence) \
  if (condition) return *error_class = (class), (sentence)
  ERROR_IF(given->num_partitions <= 0, MPI_ERR_ARG, "the number of partitions must be at least 1");
  ERROR_IF(given->count < 0, MPI_ERR_COUNT, "the count of a partition must not be negative");
  ERROR_IF(given->type == MPI_DATATYPE_NULL, MPI_ERR_TYPE, "the datatype of a partitioned transfer is MPI_DATATYPE_NULL");
  ERROR_IF(!is_usable(given->type), MPI_ERR_TYPE, "the datatype of a partitioned transfer is not committed, or not a datatype");
  /* Programs whose domain ends here may have no buffer for the neighbour that is not there. */
  ERROR_IF(given->peer != MPI_PROC_NULL && is_missing(given->buffer, given->count, given->type), MPI_ERR_BUFFER,
           "the buffer of a partitioned transfer is NULL");
  ERROR_IF(given->peer == MPI_ANY_SOURCE, MPI_ERR_RANK, "the rank of a partitioned transfer is a wildcard");
  ERROR_IF(given->peer != MPI_PROC_NULL && (given->peer < 0 || given->peer >= view->num_peers), MPI_ERR_RANK,
           "the rank of a partitioned transfer is outside its communicator");
  ERROR_IF(given->tag == MPI_ANY_TAG, MPI_ERR_TAG, "the tag of a partitioned transfer is a wildcard");
  ERROR_IF(given->tag < 0 || given->tag > eb_domain.tag_ub, MPI_ERR_TAG,
           "the tag of a partitioned transfer is negative or above MPI_TAG_UB");
  ERROR_IF(!request, MPI_ERR_ARG, "the pointer to the request of a partitioned transfer is NULL");
#undef ERROR_IF
  return NULL;
}

static const char *sentence_of(int error_class) {
  switch (error_class) {
    case MPI_ERR_NO_MEM: return "out of memory for a partitioned request";
    case MPI_ERR_UNSUPPORTED_OPERATION:
      return "a partitioned transfer has more than 2^24 segments; set EARLYBIRD_SEGMENTS to fewer, or EARLYBIRD_AGGR_SIZE to more "
             "bytes";
    case MPI_ERR_TYPE: return "one element of a datatype with gaps has more than 2^31 - 1 bytes";
    case MPI_ERR_COUNT: return "a partitioned transfer has more than 2^48 bytes, which no buffer holds";
    case MPI_ERR_TRUNCATE: return "the two sides of a partitioned transfer differ in their total size";
    default: return NULL;
  }
}

int eb_raise_for(eb_channel *channel, int code) {
  /* Other classes have a different meaning when a request is created. */
  const char *sentence = code == MPI_ERR_TRUNCATE || code == MPI_ERR_NO_MEM ? sentence_of(code) : NULL;
  return sentence ? eb_raise(channel->view, code, sentence) : eb_raise_code(channel->view, code);
}

/* Printed once, to explain why a program is not faster. */
static void note_unserved(int peer) {
  static atomic_flag is_noted = ATOMIC_FLAG_INIT;
  if (atomic_flag_test_and_set(&is_noted)) return;
  fprintf(stderr,
          "earlybird: rank %d of MPI_COMM_WORLD uses the MPI's own partitioned communication with a rank that does not "
          "have libearlybird (rank %d of their communicator)\n",
          eb_world.rank, peer);
}

/* Is the peer ours to serve? Then its rank in the domain is filled in. If not, both ranks know alike that the MPI's own calls are to
 * be used. */
static bool is_served(const eb_view *view, eb_channel_arguments *given) {
  if (given->peer == MPI_PROC_NULL) return true;
  given->wire_peer = eb_view_domain_rank(view, given->peer);
  if (given->wire_peer < 0) note_unserved(given->peer);
  return given->wire_peer >= 0;
}

static int make(eb_view *view, const eb_channel_arguments *given, MPI_Request *request) {
  eb_bindings_redirect(); /* plug-ins may have brought Fortran along since MPI_Init */
  eb_channel *channel;
  const int rc = eb_channel_create(view, given, &channel);
  if (rc == MPI_SUCCESS) {
    *request = channel->entry.handle;
    return rc;
  }
  return sentence_of(rc) ? eb_raise(view, rc, sentence_of(rc)) : eb_raise_code(view, rc);
}

/* Makes the request if it is ours to make, or refuses its arguments. False: the MPI's own call is to be used. */
static bool is_done(eb_channel_arguments *given, MPI_Comm comm, MPI_Request *request, int *rc) {
  int error_class;
  /* Fortran's handles that do not exist become null pointers, and Open MPI 5.0's own call does not check either. */
  if (!comm || comm == MPI_COMM_NULL) {
    *rc = refuse_null_communicator();
    return true;
  }
  eb_view *const view = eb_world.on ? eb_communicator_view(comm) : NULL;
  if (!view) return false;
  const char *const error = find_error(view, given, request, &error_class);
  if (!error && !is_served(view, given)) return false;
  *rc = error ? eb_raise(view, error_class, error) : make(view, given, request);
  return true;
}

EB_EXPORT int MPI_Psend_init(const void *buf, int partitions, EB_PARTITIONED_COUNT count, MPI_Datatype datatype, int dest, int tag,
                             MPI_Comm comm, MPI_Info info, MPI_Request *request) {
  eb_channel_arguments given = {true, (void *)buf, partitions, count, datatype, dest, tag, -1, info};
  int rc;
  if (is_done(&given, comm, request, &rc)) return rc;
  eb_loaded_explain_absence();
  psend_init_fn *theirs = own_psend_init_fn();
  return theirs ? theirs(buf, partitions, count, datatype, dest, tag, comm, info, request) : refuse_communicator(comm);
}

EB_EXPORT int MPI_Precv_init(void *buf, int partitions, EB_PARTITIONED_COUNT count, MPI_Datatype datatype, int source, int tag,
                             MPI_Comm comm, MPI_Info info, MPI_Request *request) {
  eb_channel_arguments given = {false, buf, partitions, count, datatype, source, tag, -1, info};
  int rc;
  if (is_done(&given, comm, request, &rc)) return rc;
  eb_loaded_explain_absence();
  precv_init_fn *theirs = own_precv_init_fn();
  return theirs ? theirs(buf, partitions, count, datatype, source, tag, comm, info, request) : refuse_communicator(comm);
}

/* Why a channel's partitions cannot be made ready. */
EB_APART static int refuse_pready(eb_channel *channel, const char *argument_error) {
  if (!channel->transfer.is_send) return eb_raise(channel->view, MPI_ERR_REQUEST, "MPI_Pready was called with a receive request");
  if (!channel->is_active) return eb_raise(channel->view, MPI_ERR_REQUEST, "MPI_Pready was called with an inactive request");
  return eb_raise(channel->view, MPI_ERR_ARG, argument_error);
}

EB_APART static int fail_pready(eb_channel *channel, int code) {
  if (code == MPI_ERR_ARG) return eb_raise(channel->view, MPI_ERR_ARG, "MPI_Pready was called twice for a partition");
  return eb_raise_for(channel, code);
}

static const char out_of_range[] = "MPI_Pready was called with a partition out of range";

static inline bool can_be_ready(const eb_channel *channel) { return channel->transfer.is_send && channel->is_active; }

static inline bool is_in_range(const eb_channel *channel, int partition) {
  return (unsigned)partition < (unsigned)channel->transfer.num_partitions; /* negative ones are large */
}

/* For a handle that is not ours: the MPI's own partitioned request, or no such request at all. */
static int refuse_foreign(void) {
  return eb_raise(NULL, MPI_ERR_REQUEST, "MPI_Pready was called with a request that is not a partitioned send");
}

EB_APART static int pready_of_others(int partition, MPI_Request request) {
  pready_fn *theirs = own_pready_fn();
  return theirs && request != MPI_REQUEST_NULL ? theirs(partition, request) : refuse_foreign();
}

/* The first call of a thread for a channel, and calls with which more is to be done, or wrong. */
EB_APART static int pready(int partition, MPI_Request request) {
  eb_channel *channel = eb_ours(request);
  if (!EB_LIKELY(channel != NULL)) return pready_of_others(partition, request);
  if (!EB_LIKELY(can_be_ready(channel) && is_in_range(channel, partition))) return refuse_pready(channel, out_of_range);
  eb_requests_remember(&channel->entry);
  const int rc = eb_channel_pready(channel, partition);
  return EB_LIKELY(rc == MPI_SUCCESS) ? rc : fail_pready(channel, rc);
}

EB_EXPORT int MPI_Pready(int partition, MPI_Request request) {
  eb_channel *const channel = eb_channel_recent(request);
  if (!EB_LIKELY(channel && eb_channel_only_marks(channel, partition))) return pready(partition, request);
  const eb_partition_state *const state = eb_channel_mark(channel, partition);
  return EB_LIKELY(state != NULL) ? eb_channel_count_marked(channel, state) : fail_pready(channel, MPI_ERR_ARG);
}

EB_EXPORT int MPI_Pready_range(int partition_low, int partition_high, MPI_Request request) {
  eb_channel *channel = eb_ours(request);
  if (!channel) {
    pready_range_fn *theirs = own_pready_range_fn();
    return theirs && request != MPI_REQUEST_NULL ? theirs(partition_low, partition_high, request) : refuse_foreign();
  }
  if (!can_be_ready(channel) || !is_in_range(channel, partition_low) || !is_in_range(channel, partition_high))
    return refuse_pready(channel, out_of_range);
  if (partition_low > partition_high)
    return refuse_pready(channel, "MPI_Pready_range was called with its first partition after its last one");
  const int rc = eb_channel_pready_range(channel, partition_low, partition_high);
  return rc == MPI_SUCCESS ? rc : fail_pready(channel, rc);
}

/* The error in a list, before any of its partitions is made ready. */
static const char *find_list_error(const eb_channel *channel, int length, const int *partitions) {
  if (length < 0) return "MPI_Pready_list was called with a negative length";
  if (length > 0 && !partitions) return "MPI_Pready_list was called without a list";
  for (int p = 0; channel && p < length; p++)
    if (!is_in_range(channel, partitions[p])) return out_of_range;
  return NULL;
}

static int pready_list_of_others(int length, const int *partitions, MPI_Request request) {
  pready_list_fn *theirs = own_pready_list_fn();
  if (!theirs || request == MPI_REQUEST_NULL) return refuse_foreign();
  const char *const error = find_list_error(NULL, length, partitions); /* Open MPI 5.0's own call does not check it */
  return error ? eb_raise(NULL, MPI_ERR_ARG, error) : theirs(length, partitions, request);
}

/* Under a name of our own, because headers differ in a const of its list. */
EB_EXPORT int eb_pready_list(int length, const int *partitions, MPI_Request request) __asm__("MPI_Pready_list");
EB_EXPORT int eb_pready_list(int length, const int *partitions, MPI_Request request) {
  eb_channel *channel = eb_ours(request);
  if (!channel) return pready_list_of_others(length, partitions, request);
  if (!can_be_ready(channel)) return refuse_pready(channel, NULL);
  const char *const error = find_list_error(channel, length, partitions);
  if (error) return refuse_pready(channel, error);
  for (int p = 0; p < length; p++) {
    const int rc = eb_channel_pready(channel, partitions[p]);
    if (!EB_LIKELY(rc == MPI_SUCCESS)) return fail_pready(channel, rc);
  }
  return MPI_SUCCESS;
}

static const char without_flag[] = "MPI_Parrived was called without a flag";

EB_APART static int parrived_of_others(MPI_Request request, int partition, int *flag) {
  parrived_fn *theirs = own_parrived_fn();
  if (request != MPI_REQUEST_NULL && !theirs)
    return eb_raise(NULL, MPI_ERR_REQUEST, "MPI_Parrived was called with a request that is not a partitioned receive");
  if (!flag) return eb_raise(NULL, MPI_ERR_ARG, without_flag);
  *flag = 1; /* of MPI_REQUEST_NULL, MPI 4.1 section 4.2.4 */
  return request == MPI_REQUEST_NULL ? MPI_SUCCESS : theirs(request, partition, flag);
}

EB_APART static int refuse_parrived(const eb_channel *channel, int partition) {
  if (channel->transfer.is_send) return eb_raise(channel->view, MPI_ERR_REQUEST, "MPI_Parrived was called with a send request");
  const char *const error = is_in_range(channel, partition) ? without_flag
                                                            : "MPI_Parrived was called with a partition out of range";
  return eb_raise(channel->view, MPI_ERR_ARG, error);
}

EB_EXPORT int MPI_Parrived(MPI_Request request, int partition, int *flag) {
  eb_channel *channel = eb_ours(request);
  if (!EB_LIKELY(channel != NULL)) return parrived_of_others(request, partition, flag);
  if (!EB_LIKELY(!channel->transfer.is_send && is_in_range(channel, partition) && flag)) return refuse_parrived(channel, partition);
  bool arrived = true;
  const int rc = channel->is_active ? eb_channel_parrived(channel, partition, &arrived) : MPI_SUCCESS;
  *flag = arrived;
  return EB_LIKELY(rc == MPI_SUCCESS) ? rc : eb_raise_for(channel, rc);
}
