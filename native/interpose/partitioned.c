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
typedef int parrived_fn(MPI_Request, int, int *);

#define OWN(type, name)               \
  static type *own_##type(void) {     \
    static void *known;               \
    return (type *)own(&known, name); \
  }
OWN(psend_init_fn, "PMPI_Psend_init")
OWN(precv_init_fn, "PMPI_Precv_init")
OWN(pready_fn, "PMPI_Pready")
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

/* Checks the arguments as MPI 4.1 section 4.2.1 requires; the message of the first error, or NULL. */
static const char *find_error(const eb_view *view, const eb_channel_arguments *given, int *error_class) {
#define ERROR_IF(condition, class, sentence) \
  if (condition) return *error_class = (class), (sentence)
  ERROR_IF(given->num_partitions <= 0, MPI_ERR_ARG, "the number of partitions must be at least 1");
  ERROR_IF(given->count < 0, MPI_ERR_COUNT, "the count of a partition must not be negative");
  ERROR_IF(given->type == MPI_DATATYPE_NULL, MPI_ERR_TYPE, "the datatype of a partitioned transfer is MPI_DATATYPE_NULL");
  ERROR_IF(given->peer == MPI_ANY_SOURCE, MPI_ERR_RANK, "the rank of a partitioned transfer is a wildcard");
  ERROR_IF(given->peer != MPI_PROC_NULL && (given->peer < 0 || given->peer >= view->num_peers), MPI_ERR_RANK,
           "the rank of a partitioned transfer is outside its communicator");
  ERROR_IF(given->tag == MPI_ANY_TAG, MPI_ERR_TAG, "the tag of a partitioned transfer is a wildcard");
  ERROR_IF(given->tag < 0 || given->tag > eb_domain.tag_ub, MPI_ERR_TAG,
           "the tag of a partitioned transfer is negative or above MPI_TAG_UB");
#undef ERROR_IF
  return NULL;
}

static const char *sentence_of(int error_class) {
  switch (error_class) {
    case MPI_ERR_OTHER: return "one communicator has more partitioned requests than its tags can distinguish";
    case MPI_ERR_NO_MEM: return "out of memory for a partitioned request";
    case MPI_ERR_TYPE: return "one element of a datatype with gaps has more than 2^31 - 1 bytes";
    case MPI_ERR_COUNT: return "the bytes of a partitioned transfer exceed 63 bits";
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

/* The view of a communicator if its peer is ours to serve, whose rank in the domain is filled in; NULL: both ranks know
 * alike that the MPI's own calls are to be used. Wrong arguments are ours to refuse. */
static eb_view *serve(MPI_Comm comm, eb_channel_arguments *given) {
  eb_view *view = eb_world.on ? eb_communicator_view(comm) : NULL;
  if (!view || given->peer < 0 || given->peer >= view->num_peers) return view;
  given->wire_peer = eb_view_domain_rank(view, given->peer);
  if (given->wire_peer >= 0) return view;
  note_unserved(given->peer);
  return NULL;
}

static int make(eb_view *view, const eb_channel_arguments *given, MPI_Request *request) {
  int error_class;
  const char *error = find_error(view, given, &error_class);
  if (error) return eb_raise(view, error_class, error);
  eb_bindings_redirect(); /* plug-ins may have brought Fortran along since MPI_Init */
  eb_channel *channel;
  const int rc = eb_channel_create(view, given, &channel);
  if (rc == MPI_SUCCESS) {
    *request = channel->entry.handle;
    return rc;
  }
  return sentence_of(rc) ? eb_raise(view, rc, sentence_of(rc)) : eb_raise_code(view, rc);
}

EB_EXPORT int MPI_Psend_init(const void *buf, int partitions, EB_PARTITIONED_COUNT count, MPI_Datatype datatype, int dest, int tag,
                             MPI_Comm comm, MPI_Info info, MPI_Request *request) {
  eb_channel_arguments given = {true, (void *)buf, partitions, count, datatype, dest, tag, -1, info};
  eb_view *view = serve(comm, &given);
  if (view) return make(view, &given, request);
  if (comm == MPI_COMM_NULL) return refuse_null_communicator(); /* Open MPI 5.0's own call does not check it */
  eb_loaded_explain_absence();
  psend_init_fn *theirs = own_psend_init_fn();
  return theirs ? theirs(buf, partitions, count, datatype, dest, tag, comm, info, request) : refuse_communicator(comm);
}

EB_EXPORT int MPI_Precv_init(void *buf, int partitions, EB_PARTITIONED_COUNT count, MPI_Datatype datatype, int source, int tag,
                             MPI_Comm comm, MPI_Info info, MPI_Request *request) {
  eb_channel_arguments given = {false, buf, partitions, count, datatype, source, tag, -1, info};
  eb_view *view = serve(comm, &given);
  if (view) return make(view, &given, request);
  if (comm == MPI_COMM_NULL) return refuse_null_communicator(); /* Open MPI 5.0's own call does not check it */
  eb_loaded_explain_absence();
  precv_init_fn *theirs = own_precv_init_fn();
  return theirs ? theirs(buf, partitions, count, datatype, source, tag, comm, info, request) : refuse_communicator(comm);
}

static int refuse_pready(eb_channel *channel, int code) {
  if (!channel->transfer.is_send) return eb_raise(channel->view, MPI_ERR_REQUEST, "MPI_Pready was called with a receive request");
  if (!channel->is_active) return eb_raise(channel->view, MPI_ERR_REQUEST, "MPI_Pready was called with an inactive request");
  if (code == MPI_SUCCESS) return eb_raise(channel->view, MPI_ERR_ARG, "MPI_Pready was called with a partition out of range");
  if (code == MPI_ERR_ARG) return eb_raise(channel->view, MPI_ERR_ARG, "MPI_Pready was called twice for a partition");
  return eb_raise_for(channel, code);
}

static inline int pready_range(eb_channel *channel, int low, int high) {
  if (!EB_LIKELY(channel->transfer.is_send && channel->is_active && low >= 0 && high < channel->transfer.num_partitions))
    return refuse_pready(channel, MPI_SUCCESS);
  for (int p = low; p <= high; p++) {
    const int rc = eb_channel_pready(channel, p);
    if (!EB_LIKELY(rc == MPI_SUCCESS)) return refuse_pready(channel, rc);
  }
  return MPI_SUCCESS;
}

/* A handle that is not ours: the MPI's own partitioned request, or no such request at all. */
static int pready_of_others(int partition, MPI_Request request) {
  pready_fn *theirs = own_pready_fn();
  if (theirs && request != MPI_REQUEST_NULL) return theirs(partition, request);
  return eb_raise(NULL, MPI_ERR_REQUEST, "MPI_Pready was called with a request that is not a partitioned send");
}

EB_EXPORT int MPI_Pready(int partition, MPI_Request request) {
  eb_channel *channel = eb_ours(request);
  return EB_LIKELY(channel != NULL) ? pready_range(channel, partition, partition) : pready_of_others(partition, request);
}

EB_EXPORT int MPI_Pready_range(int partition_low, int partition_high, MPI_Request request) {
  eb_channel *channel = eb_ours(request);
  if (channel) return pready_range(channel, partition_low, partition_high);
  int rc = MPI_SUCCESS;
  for (int p = partition_low; rc == MPI_SUCCESS && p <= partition_high; p++) rc = pready_of_others(p, request);
  return rc;
}

/* Under a name of our own, because headers differ in a const of its list. */
EB_EXPORT int eb_pready_list(int length, const int *partitions, MPI_Request request) __asm__("MPI_Pready_list");
EB_EXPORT int eb_pready_list(int length, const int *partitions, MPI_Request request) {
  eb_channel *channel = eb_ours(request);
  int rc = MPI_SUCCESS;
  for (int p = 0; rc == MPI_SUCCESS && p < length; p++)
    rc = channel ? pready_range(channel, partitions[p], partitions[p]) : pready_of_others(partitions[p], request);
  return rc;
}

EB_EXPORT int MPI_Parrived(MPI_Request request, int partition, int *flag) {
  eb_channel *channel = eb_ours(request);
  if (!channel) {
    *flag = 1; /* of MPI_REQUEST_NULL, MPI 4.1 section 4.2.4 */
    if (request == MPI_REQUEST_NULL) return MPI_SUCCESS;
    parrived_fn *theirs = own_parrived_fn();
    if (theirs) return theirs(request, partition, flag);
    return eb_raise(NULL, MPI_ERR_REQUEST, "MPI_Parrived was called with a request that is not a partitioned receive");
  }
  if (channel->transfer.is_send) return eb_raise(channel->view, MPI_ERR_REQUEST, "MPI_Parrived was called with a send request");
  if (partition < 0 || partition >= channel->transfer.num_partitions)
    return eb_raise(channel->view, MPI_ERR_ARG, "MPI_Parrived was called with a partition out of range");
  bool arrived = true;
  const int rc = channel->is_active ? eb_channel_parrived(channel, partition, &arrived) : MPI_SUCCESS;
  *flag = arrived;
  return rc == MPI_SUCCESS ? rc : eb_raise_for(channel, rc);
}
