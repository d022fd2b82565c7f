/* Threads of the process, and the messages of completed requests. */
#include "recorder/recording/recorder.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

bool eb_is_any_cancelled;
__thread eb_thread *eb_thread_current __attribute__((tls_model("initial-exec")));

static eb_thread *first;
static uint32_t num;
static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void leave(void *ended) {
  eb_thread *thread = ended;
  eb_thread_current = NULL;
  eb_epoch_current = NULL;
  eb_epoch_resume(&thread->epoch); /* it may have been cancelled in a call */
  eb_recorder_end_epoch(thread);
  thread->epoch.num_open = 0;
  __atomic_store_n(&thread->epoch.num_closed_by_others, 0, __ATOMIC_RELAXED);
  thread->is_inside = false;
  if (thread->at_end && __atomic_load_n(&eb_recorder_is_on, __ATOMIC_RELAXED)) thread->at_end(thread);
  thread->at_end = NULL;
  thread->joined_ticks = 0;
  __atomic_store_n(&thread->traced_number, 0, __ATOMIC_RELAXED);
  thread->is_opening = false;
  thread->request = 0;
  eb_open_call_change(thread->open);
  thread->open->ended_ticks = 0;
  __atomic_store_n(&thread->open->begin_ticks, 0, __ATOMIC_RELAXED);
  eb_open_call_changed(thread->open);
  __atomic_store_n(&thread->is_used, 0, __ATOMIC_RELEASE);
}

static void create_key(void) { (void)pthread_key_create(&at_end, leave); }

eb_thread *eb_threads_first(void) { return __atomic_load_n(&first, __ATOMIC_ACQUIRE); }

/* Of a thread that has ended: programs that create threads all the time would fill the memory otherwise. */
static eb_thread *take_over(void) {
  for (eb_thread *thread = eb_threads_first(); thread; thread = thread->next) {
    int unused = 0;
    if (__atomic_compare_exchange_n(&thread->is_used, &unused, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return thread;
  }
  return NULL;
}

static eb_thread *create(void) {
  eb_thread *thread = calloc(1, sizeof *thread);
  if (!thread) return NULL;
  thread->is_used = 1;
  thread->number = __atomic_fetch_add(&num, 1, __ATOMIC_RELAXED);
  thread->next = eb_threads_first();
  while (!__atomic_compare_exchange_n(&first, &thread->next, thread, true, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE));
  return thread;
}

eb_thread *eb_thread_begin(void) {
  (void)pthread_once(&once, create_key);
  eb_thread *thread = take_over();
  if (!thread) thread = create();
  if (!thread) return NULL;
  eb_open_call *const open = eb_open_call_of(thread->number);
  thread->open = open ? open : &thread->no_page;
  thread->awaited = eb_awaited_call_of(thread->number);
  thread->awaited->task = (uint64_t)syscall(SYS_gettid);
  thread->sites.is_stack_asked = false; /* that of the thread that has ended was elsewhere */
  (void)pthread_setspecific(at_end, thread);
  eb_epoch_current = &thread->epoch;
  return eb_thread_current = thread;
}

/* What a call calls in turn has frames below its own, unless it is on another stack. */
bool eb_thread_has_left(eb_thread *thread, const char *frame) {
  if (frame < thread->frame || !eb_site_is_on_stack(&thread->sites, frame) || !eb_site_is_on_stack(&thread->sites, thread->frame))
    return false;
  if (eb_recorder_counts()) eb_epoch_resume(&thread->epoch);
  thread->is_opening = false;
  thread->request = 0;
  return true;
}

void *eb_thread_scratch(eb_thread *thread, size_t bytes) {
  if (bytes <= thread->scratch_bytes) return thread->scratch;
  free(thread->scratch);
  thread->scratch = malloc(2 * bytes);
  thread->scratch_bytes = thread->scratch ? 2 * bytes : 0;
  return thread->scratch;
}

uint64_t eb_type_bytes(eb_thread *thread, MPI_Datatype type, unsigned hash) {
  MPI_Count size_bytes = 0;
  int integers, addresses, types, combiner;
  if (PMPI_Type_size_x(type, &size_bytes) != MPI_SUCCESS || size_bytes < 0) return 0;
  if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) == MPI_SUCCESS && combiner == MPI_COMBINER_NAMED) {
    thread->sizes[hash].handle = type;
    thread->sizes[hash].size_bytes = (uint64_t)size_bytes;
  }
  return (uint64_t)size_bytes;
}

static struct {
  MPI_Datatype handle;
  uint64_t size_bytes;
} usual_types[32];
static size_t num_usual_types;

void eb_usual_types_begin(void) {
  const MPI_Datatype types[] = {
      MPI_INT,       MPI_DOUBLE,  MPI_CHAR,    MPI_BYTE,        MPI_FLOAT,    MPI_LONG,     MPI_UNSIGNED,         MPI_LONG_LONG,
      MPI_SHORT,     MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T,     MPI_UINT32_T, MPI_UINT64_T, MPI_UNSIGNED_CHAR,    MPI_UNSIGNED_LONG,
      MPI_INT8_T,    MPI_PACKED,  MPI_2INT,    MPI_LONG_DOUBLE, MPI_INTEGER,  MPI_REAL,     MPI_DOUBLE_PRECISION, MPI_LOGICAL,
      MPI_CHARACTER,
  };
  num_usual_types = 0;
  for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
    int bytes = 0;
    if ((uintptr_t)types[t] == 0 || types[t] == MPI_DATATYPE_NULL || PMPI_Type_size(types[t], &bytes) != MPI_SUCCESS || bytes <= 0)
      continue;
    usual_types[num_usual_types].handle = types[t];
    usual_types[num_usual_types++].size_bytes = (uint64_t)bytes;
  }
}

uint64_t eb_usual_type_bytes(eb_thread *thread, MPI_Datatype type, unsigned hash) {
  for (size_t t = 0; t < num_usual_types; t++) {
    if (usual_types[t].handle != type) continue;
    thread->sizes[hash].handle = type;
    return thread->sizes[hash].size_bytes = usual_types[t].size_bytes;
  }
  return 0;
}

uint64_t eb_status_bytes(const MPI_Status *status) {
  MPI_Count bytes = 0;
  if (!eb_recorder_counts()) return EB_BYTES_UNKNOWN; /* nobody asks */
  if (PMPI_Get_elements_x(status, MPI_BYTE, &bytes) != MPI_SUCCESS || bytes < 0) return 0;
  return (uint64_t)bytes;
}

/* Polls of a thread one after another are one record, as a program that spins would leave nothing else. Between polls that are
 * further apart the program computes. NULL: the call is not one of them. */
static eb_traced *repeated(const eb_span *span, uint64_t what, uint64_t site) {
  const uint64_t number = span->thread->traced_number;
  if (number == 0 || eb_what_role(what) != EB_ROLE_CALL) return NULL;
  eb_traced *last = eb_trace_place(number);
  if (__atomic_load_n(&last->turn, __ATOMIC_RELAXED) != eb_trace_turn(number)) return NULL;
  const uint64_t apart = span->begin_ticks - last->begin_ticks - last->ticks;
  return eb_traced_kind_of(last) == EB_TRACED_POLLS && last->call == eb_what_call(what) && last->site == site &&
                 apart <= (uint64_t)(EB_TRACE_LONGEST_PAUSE_S / eb_recorder_tick_s())
             ? last
             : NULL;
}

static void keep(const eb_span *span, eb_traced *record) {
  eb_thread *thread = span->thread;
  record->begin_ticks = span->begin_ticks;
  record->ticks = span->ticks;
  record->site = (uint64_t)(uintptr_t)thread->epoch.present.site;
  record->thread = (uint16_t)(thread->number < UINT16_MAX ? thread->number : UINT16_MAX);
  thread->traced_number = eb_trace_add(record);
  if (__builtin_expect(eb_trace_num_unwritten() >= EB_TRACE_RING / 2, 0)) eb_recorder_write_trace();
}

void eb_span_trace(const eb_span *span, uint64_t what, int peer, int tag, uint32_t calls, uint64_t bytes) {
  eb_thread *thread = span->thread;
  const unsigned role = eb_what_role(what), call = eb_what_call(what);
  const bool is_poll = role == EB_ROLE_CALL && eb_calls_begin[call].kind == EB_CALL_POLL;
  eb_traced *const last = is_poll ? repeated(span, what, (uint64_t)(uintptr_t)thread->epoch.present.site) : NULL;
  if (last) {
    last->bytes++;
    last->ticks = span->begin_ticks + span->ticks - last->begin_ticks;
    return;
  }
  const eb_traced_kind kind = is_poll ? EB_TRACED_POLLS : calls > 0 ? EB_TRACED_CALL : EB_TRACED_MESSAGE;
  eb_traced record = {
      .request = thread->request,
      .bytes = is_poll ? 1 : bytes,
      .posted_ticks = thread->posted_ticks,
      .what = eb_traced_what(eb_what_communicator(what), role, kind),
      .peer = peer,
      .tag = tag,
      .call = (uint16_t)call,
  };
  if (thread->is_opening && calls > 0) {
    thread->opened.what = eb_traced_what(eb_what_communicator(what), role, EB_TRACED_COMPLETION);
    thread->opened.call = call;
    thread->opened.peer = peer;
    thread->opened.tag = tag;
    thread->opened.bytes = bytes;
  }
  keep(span, &record);
}

void eb_span_trace_start(const eb_span *span, const eb_request *request) {
  if (!eb_trace_is_on()) return;
  eb_traced record = {
      .request = request->serial,
      .bytes = request->kind == EB_REQUEST_PARTITIONED_RECEIVE ? request->bytes : 0,
      .what = eb_traced_what(eb_number_of(request->communicator), EB_ROLE_CALL, EB_TRACED_MESSAGE),
      .peer = request->peer,
      .tag = request->tag,
      .call = (uint16_t)request->call,
  };
  keep(span, &record);
}

/* Of a request whose completion is no message. */
static void trace_completion(const eb_span *span, const eb_request *request) {
  const bool is_collective = request->kind == EB_REQUEST_COLLECTIVE;
  const eb_role role = eb_request_receives(request) ? EB_ROLE_RECEIVED : EB_ROLE_SENT;
  eb_traced record = {
      .request = request->serial,
      .bytes = is_collective ? 0 : request->bytes,
      .posted_ticks = request->posted_ticks,
      .what = is_collective || request->kind == EB_REQUEST_OTHER
                  ? request->what
                  : eb_traced_what(eb_number_of(request->communicator), role, EB_TRACED_COMPLETION),
      .peer = request->peer,
      .tag = request->tag,
      .call = (uint16_t)request->call,
  };
  keep(span, &record);
}

/* False: it is no message. */
static bool count_message(const eb_span *span, const eb_request *request, const MPI_Status *status) {
  int is_cancelled = 0;
  if (request->kind == EB_REQUEST_PARTITIONED_RECEIVE) {
    eb_add_partitioned(span, EB_ROLE_RECEIVED, request);
    return request->peer != EB_PEER_NULL;
  }
  if (request->kind == EB_REQUEST_RECEIVE_NO_STATUS) {
    eb_add_message(span, request->call, EB_ROLE_RECEIVED, request->communicator, request->peer, request->tag, request->bytes);
    return request->peer != EB_PEER_NULL;
  }
  if (!status) { /* after an error */
    eb_awaited_lose();
    return false;
  }
  if (eb_is_any_cancelled && PMPI_Test_cancelled(status, &is_cancelled) == MPI_SUCCESS && is_cancelled) return false;
  const int peer = eb_world_rank(request->communicator, status->MPI_SOURCE);
  eb_add_message(span, request->call, EB_ROLE_RECEIVED, request->communicator, peer, status->MPI_TAG, eb_status_bytes(status));
  return peer != EB_PEER_NULL;
}

/* All that pages alone need is in the place of the request; statuses say which message a receive of any source or tag has taken,
 * and whether it was cancelled. */
static void count_in_page(const eb_awaited_request *request, const MPI_Status *status) {
  int is_cancelled = 0, peer = request->peer, tag = request->tag;
  if (request->kind != EB_AWAITED_RECEIVE) return;
  const bool has_status = request->partitions != EB_AWAITED_NO_STATUS;
  if (has_status && eb_is_any_cancelled && status && PMPI_Test_cancelled(status, &is_cancelled) == MPI_SUCCESS && is_cancelled)
    return;
  if (eb_awaited_is_wild(request)) {
    if (!has_status) return; /* it has counted as lost since it was posted */
    if (!status) {
      eb_awaited_lose();
      return;
    }
    peer = eb_world_rank(eb_communicator_of_number(request->communicator), status->MPI_SOURCE);
    tag = status->MPI_TAG;
  }
  if (peer != EB_PEER_NULL && tag >= 0) eb_awaited_message(false, request->communicator, peer, tag, EB_BYTES_UNKNOWN);
}

bool eb_request_completed(const eb_span *span, uint64_t key, eb_ticket ticket, bool is_freed, const MPI_Status *status) {
  eb_request request;
  eb_awaited_request in_page;
  eb_open_call *const open = span->thread->open;
  const bool is_in_page = eb_awaited_complete(key, &in_page);
  open->progress++;
  if (open->polling_ticks) open->polling_ticks = span->begin_ticks + span->ticks;
  if (is_in_page && !eb_recorder_counts()) {
    count_in_page(&in_page, status);
    return is_freed;
  }
  if (!eb_requests_complete(key, ticket, &request)) return is_freed;
  if (!request.is_active) return false;
  if (!eb_recorder_counts() && eb_request_is_persistent(&request)) return false;
  if (request.starter != &span->thread->epoch) { /* from now on it counts as this thread's */
    eb_epoch_close_by_other(request.starter);
    eb_epoch_open(&span->thread->epoch);
  }
  eb_span_of_request(span, request.serial, request.posted_ticks);
  const bool is_message = eb_request_receives(&request) && count_message(span, &request, status);
  eb_span_of_none(span);
  if (!is_message && eb_trace_is_on() && request.serial) trace_completion(span, &request);
  return true;
}
