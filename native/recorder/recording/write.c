/* When and what a rank writes. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "partitioned/process/host.h"
#include "recorder/recording/file.h"
#include "recorder/recording/hidden.h"
#include "recorder/recording/recorder.h"
#include "recorder/recording/settings.h"
#include "recorder/recording/thread_sites.h"
#include "recorder/recording/trace.h"

/* What is appended to the file is written every tenth of a second or twentieth of the run, whichever is longer: the number of
 * these chunks grows with the logarithm of the time, 240 in a day. */
#define MIN_INTERVAL_S 0.1
#define INTERVAL_OF_RUN (1.0 / 20)
/* A rank that is killed or hangs in a call loses what was counted since the last keeping. That may take this part of the time; the
 * first ones follow each other sooner, because programs may hang at once. These are some hundred small writes a second to the
 * same place: on a file system that many ranks share, which they could bring to a stand, it is kept only as often as written. */
#define MAX_KEEPING_OF_RUN (1.0 / 200)
/* An epoch that is longer than this, and than half of the run, is cut. */
#define LONGEST_EPOCH_S 1.0
/* For another thread that writes, when the program ends. */
#define LONGEST_WAIT_S 2
/* Events of an epoch that has not ended. */
#define MAX_PENDING (1u << 16)

/* How long a thread ran, and how long it was ready to run while its cores ran others. */
typedef struct {
  uint64_t ran_ns, core_wait_ns;
} thread_times;

/* Unlike the program's mutexes, it is not held while a call of the MPI waits. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t begin_ticks;
static long begin_thread;
static thread_times begin_times; /* of that thread */
static bool knows_times;
static char program[4096]; /* the path of the main program, of which the linker knows only argv[0] */
static bool is_child;      /* forked: the file is the parent's */
static uint64_t num_kept;

bool eb_recorder_is_on, eb_sends_are_synchronous, eb_recorder_keeps_only_pages, eb_recorder_is_quick;

static uint64_t nanoseconds(uint64_t ticks) { return (uint64_t)((double)ticks * eb_recorder_tick_s() * 1e9); }
static uint64_t since_begin_ns(uint64_t ticks) { return ticks > begin_ticks ? nanoseconds(ticks - begin_ticks) : 0; }

/* Without %f, which would print the decimal comma of the program's locale. */
static void print_seconds(eb_payload *payload, const char *key, uint64_t ns) {
  eb_payload_print(payload, ",\"%s\":%llu.%09llu", key, (unsigned long long)(ns / 1000000000u),
                   (unsigned long long)(ns % 1000000000u));
}

static void print_members(eb_payload *payload, const char *key, const eb_members *members) {
  eb_payload_print(payload, ",\"%s\":", key);
  if (!members->listed) {
    eb_payload_print(payload, "{\"first\":%d,\"stride\":%d,\"num\":%d}", members->first, members->stride, members->num);
    return;
  }
  for (int r = 0; r < members->num; r++) eb_payload_print(payload, "%c%d", r ? ',' : '[', members->listed[r]);
  eb_payload_print(payload, "]");
}

static void print_list(eb_payload *payload, const char *key, const int *values, int num) {
  eb_payload_print(payload, ",\"%s\":[", key);
  for (int v = 0; v < num; v++) eb_payload_print(payload, "%s%d", v ? "," : "", values[v]);
  eb_payload_print(payload, "]");
}

static void write_communicator(const eb_communicator *communicator) {
  eb_payload payload = {0};
  eb_payload_print(&payload, "{\"kind\":\"communicator\",\"number\":%u,\"rank\":%d,\"name\":", communicator->number,
                   communicator->rank);
  eb_payload_string(&payload, __atomic_load_n(&communicator->name, __ATOMIC_ACQUIRE));
  if (communicator->identity) eb_payload_print(&payload, ",\"identity\":%llu", (unsigned long long)communicator->identity);
  print_members(&payload, "members", &communicator->local);
  if (communicator->is_inter) print_members(&payload, "remote_members", &communicator->peers);
  eb_payload_print(&payload, ",\"topology\":\"%s\"", communicator->topology);
  if (communicator->num_dims > 0) {
    print_list(&payload, "dims", communicator->dims, communicator->num_dims);
    print_list(&payload, "periods", communicator->periods, communicator->num_dims);
  }
  if (strcmp(communicator->topology, "none") != 0) {
    print_list(&payload, "sources", communicator->sources, communicator->num_sources);
    print_list(&payload, "destinations", communicator->destinations, communicator->num_destinations);
  }
  eb_payload_print(&payload, "}");
  eb_file_append(EB_CHUNK_JSON, &payload);
}

/* Before the entries that name them; again if the program has named one since. */
static void write_communicators(void) {
  for (eb_communicator *each = eb_communicators_first(); each; each = each->next)
    if (!__atomic_exchange_n(&each->is_written, true, __ATOMIC_ACQUIRE)) write_communicator(each);
}

static const char *path_of(const char *module) {
  if (module[0] == '/' || strcmp(module, program_invocation_name) != 0) return module;
  const char *slash = strrchr(program, '/');
  /* A program that ld.so was told to start: that is what runs. */
  return slash && strncmp(slash, "/ld-", 4) != 0 && strncmp(slash, "/ld.", 4) != 0 ? program : module;
}

/* The module and the place in it are the same in all ranks, unlike the address. */
static void print_python_place(eb_payload *payload, const eb_python_place *place) {
  eb_payload_print(payload, "\"offset\":%d,\"module\":", place->line);
  eb_payload_string(payload, place->file);
  eb_payload_print(payload, ",\"function\":");
  eb_payload_string(payload, place->function);
  eb_payload_print(payload, ",\"line\":%d,\"file\":", place->line);
  eb_payload_string(payload, place->file);
}

static void print_site(eb_payload *payload, const void *site) {
  const eb_python_place *place = eb_python_place_at(site);
  if (place) {
    print_python_place(payload, place);
    return;
  }
  Dl_info found = {0};
  const bool is_known = dladdr(site, &found) != 0;
  const uintptr_t base = is_known ? (uintptr_t)found.dli_fbase : 0;
  eb_payload_print(payload, "\"offset\":%llu,\"module\":", (unsigned long long)((uintptr_t)site - base));
  eb_payload_string(payload, is_known && found.dli_fname ? path_of(found.dli_fname) : "");
  eb_payload_print(payload, ",\"function\":");
  eb_payload_string(payload, is_known && found.dli_sname ? found.dli_sname : "");
}

static void print_step(eb_payload *payload, const eb_step *step) {
  /* The address is that in the trace of this rank. */
  eb_payload_print(payload, "{\"call\":%u,\"address\":%llu,", step->call, (unsigned long long)(uintptr_t)step->site);
  print_site(payload, step->site);
  eb_payload_print(payload, "}");
}

/* Before a call that may never return: the entries that name them may never be written. */
static void write_places(void) {
  for (const void *site; (site = eb_thread_site_unwritten()) != NULL;) {
    eb_payload payload = {0};
    eb_payload_print(&payload, "{\"kind\":\"place\",\"address\":%llu,", (unsigned long long)(uintptr_t)site);
    print_site(&payload, site);
    eb_payload_print(&payload, "}");
    eb_file_append(EB_CHUNK_JSON, &payload);
  }
  for (eb_python_place *place; (place = eb_python_place_unwritten()) != NULL;) {
    eb_payload payload = {0};
    eb_payload_print(&payload, "{\"kind\":\"place\",\"address\":%llu,", (unsigned long long)(uintptr_t)place);
    print_python_place(&payload, place);
    eb_payload_print(&payload, "}");
    eb_file_append(EB_CHUNK_JSON, &payload);
  }
}

static int print_module(struct dl_phdr_info *info, size_t size, void *with) {
  eb_payload *payload = with;
  uintptr_t begin = UINTPTR_MAX, end = 0;
  (void)size;
  for (int p = 0; p < info->dlpi_phnum; p++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[p];
    if (part->p_type != PT_LOAD) continue;
    const uintptr_t first = info->dlpi_addr + part->p_vaddr / 4096 * 4096;
    if (first < begin) begin = first;
    if (info->dlpi_addr + part->p_vaddr + part->p_memsz > end) end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
  }
  if (end == 0) return 0;
  const bool is_program = !info->dlpi_name || !*info->dlpi_name;
  eb_payload_print(payload, "%s{\"begin\":%llu,\"end\":%llu,\"module\":", payload->is_begun ? "," : "", (unsigned long long)begin,
                   (unsigned long long)end);
  payload->is_begun = true;
  eb_payload_string(payload, is_program ? path_of(program_invocation_name) : info->dlpi_name);
  eb_payload_print(payload, "}");
  return 0;
}

/* Where an address is of which nothing more has been written, because the rank has hung there. */
static void write_modules(void) {
  eb_payload payload = {0};
  eb_payload_print(&payload, "{\"kind\":\"modules\",\"modules\":[");
  dl_iterate_phdr(print_module, &payload);
  eb_payload_print(&payload, "]}");
  eb_file_append(EB_CHUNK_JSON, &payload);
}

static void write_phase(const eb_phase *phase) {
  eb_payload payload = {0};
  eb_payload_print(&payload, "{\"kind\":\"phase\",\"number\":%u,\"region\":%d,\"steps\":[", phase->number, phase->region);
  for (uint32_t s = 0; s < phase->num_steps; s++) {
    if (s > 0) eb_payload_print(&payload, ",");
    print_step(&payload, &phase->steps[s]);
  }
  eb_payload_print(&payload, "]}");
  eb_file_append(EB_CHUNK_JSON, &payload);
}

/* Before the entries that name them. */
static void write_phases(void) {
  for (eb_phase *each = eb_phases_first(); each && !each->is_written; each = each->next) {
    write_phase(each);
    each->is_written = true;
  }
}

static void write_samples(const eb_thread *thread, uint32_t phase, eb_samples *samples, bool is_end) {
  eb_payload payload = {0};
  if (!samples || !eb_samples_are_due(samples, is_end)) return;
  eb_payload_print(&payload, "{\"kind\":\"epochs\",\"phase\":%u,\"thread\":%u,", phase, thread->number);
  if (!eb_samples_print(samples, &payload)) payload.has_failed = true;
  eb_payload_print(&payload, "}");
  eb_file_append(EB_CHUNK_JSON, &payload);
}

static void write_phase_totals(eb_thread *thread, bool is_end) {
  eb_payload payload = {0};
  eb_phase_totals totals;
  for (uint32_t phase = 0; eb_phase_totals_read(&thread->epoch, phase, &totals); phase++) {
    write_samples(thread, phase, totals.samples, is_end);
    if (!totals.is_dirty) continue;
    const eb_written_phase written = {
        .phase = phase,
        .thread = thread->number,
        .epochs = totals.epochs,
        .time_ns = nanoseconds(totals.ticks),
        .first_ns = since_begin_ns(totals.first_ticks),
        .last_ns = since_begin_ns(totals.last_ticks),
    };
    eb_payload_append(&payload, &written, sizeof written);
  }
  eb_file_append(EB_CHUNK_PHASES, &payload);
}

static void write_arrivals(eb_thread *thread) {
  for (eb_arrivals_total *total = __atomic_load_n(&thread->epoch.arrivals.totals, __ATOMIC_ACQUIRE); total; total = total->next) {
    if (!__atomic_exchange_n(&total->is_dirty, 0, __ATOMIC_ACQUIRE)) continue;
    eb_payload payload = {0};
    eb_payload_print(&payload, "{\"kind\":\"arrivals\",\"phase\":%u,\"thread\":%u,\"regions\":%llu,", total->phase, thread->number,
                     (unsigned long long)__atomic_load_n(&total->regions, __ATOMIC_RELAXED));
    print_site(&payload, total->site);
    eb_payload_print(&payload, ",\"lead_ns\":[");
    for (uint32_t t = 0; t < total->num; t++)
      eb_payload_print(&payload, "%s%llu", t ? "," : "",
                       (unsigned long long)nanoseconds(__atomic_load_n(&total->lead_ticks[t], __ATOMIC_RELAXED)));
    eb_payload_print(&payload, "],\"classes\":[");
    for (uint32_t c = 0; c < EB_ARRIVALS_NUM_CLASSES; c++)
      eb_payload_print(&payload, "%s%llu", c ? "," : "", (unsigned long long)__atomic_load_n(&total->classes[c], __ATOMIC_RELAXED));
    eb_payload_print(&payload, "]}");
    eb_file_append(EB_CHUNK_JSON, &payload);
  }
}

/* `is_kept`: they are written again the next time. */
static void write_entries(eb_thread *thread, bool is_kept) {
  eb_payload payload = {0};
  const uint64_t run_ns = nanoseconds(eb_recorder_ticks() - begin_ticks);
  bool is_any = false;
  eb_payload_append(&payload, &run_ns, sizeof run_ns);
  for (eb_block *block = __atomic_load_n(&thread->table.first, __ATOMIC_ACQUIRE); block;
       block = __atomic_load_n(&block->next, __ATOMIC_ACQUIRE)) {
    const uint32_t num = __atomic_load_n(&block->num, __ATOMIC_ACQUIRE);
    for (uint32_t e = 0; e < num; e++) {
      eb_entry *entry = &block->entries[e];
      const uint32_t is_dirty = is_kept ? __atomic_load_n(&entry->is_dirty, __ATOMIC_ACQUIRE)
                                        : __atomic_exchange_n(&entry->is_dirty, 0, __ATOMIC_ACQUIRE);
      if (!is_dirty) continue;
      const eb_written_entry written = {
          .call = (uint16_t)eb_what_call(entry->what),
          .role = (uint8_t)eb_what_role(entry->what),
          .size_class = (uint8_t)eb_what_size_class(entry->what),
          .communicator = eb_what_communicator(entry->what),
          .peer = entry->peer,
          .thread = thread->number,
          .phase = eb_what_phase(entry->what),
          .calls = __atomic_load_n(&entry->calls, __ATOMIC_RELAXED),
          .messages = __atomic_load_n(&entry->messages, __ATOMIC_RELAXED),
          .bytes = __atomic_load_n(&entry->bytes, __ATOMIC_RELAXED),
          .time_ns = nanoseconds(__atomic_load_n(&entry->ticks, __ATOMIC_RELAXED)),
      };
      eb_payload_append(&payload, &written, sizeof written);
      is_any = true;
    }
  }
  if (is_any && is_kept) eb_file_keep(EB_CHUNK_ENTRIES, &payload);
  else if (is_any) eb_file_append(EB_CHUNK_ENTRIES, &payload);
  free(payload.at);
}

/* Of the epochs that have not ended, of threads that are in a call: one may never return from it. */
static void keep_pending(void) {
  eb_payload payload = {0};
  bool is_any = false;
  const uint64_t run_ns = nanoseconds(eb_recorder_ticks() - begin_ticks);
  eb_payload_append(&payload, &run_ns, sizeof run_ns);
  for (eb_thread *thread = eb_threads_first(); thread; thread = thread->next) {
    uint32_t num = 0;
    eb_event *events = eb_epoch_pending_read(&thread->epoch, &num);
    for (uint32_t e = 0; e < num && e < MAX_PENDING; e++) {
      const eb_event *event = &events[e];
      const eb_written_entry written = {
          .call = (uint16_t)eb_what_call(event->what),
          .role = (uint8_t)eb_what_role(event->what),
          .size_class = (uint8_t)eb_what_size_class(event->what),
          .communicator = eb_what_communicator(event->what),
          .peer = event->peer,
          .thread = thread->number,
          .calls = event->calls,
          .messages = event->messages,
          .bytes = event->bytes,
          .time_ns = nanoseconds(event->ticks),
      };
      eb_payload_append(&payload, &written, sizeof written);
      is_any = true;
    }
    free(events);
  }
  if (is_any) eb_file_keep(EB_CHUNK_PENDING, &payload);
  free(payload.at);
}

/* What all threads have counted since they wrote. The events of an epoch come after the entries: one that ends in between is in
 * neither, and never in both. */
static void keep(void) {
  eb_file_keep_begin();
  for (eb_thread *each = eb_threads_first(); each; each = each->next) write_entries(each, true);
  keep_pending();
  eb_file_keep_end();
}

/* What is new, and the last record of each thread, which may have grown: it may poll while others record. */
static void write_trace(void) {
  for (const eb_thread *thread = eb_threads_first(); thread; thread = thread->next)
    eb_trace_rewrite(__atomic_load_n(&thread->traced_number, __ATOMIC_RELAXED));
  eb_trace_write();
}

void eb_recorder_write_trace(void) {
  int cancel_state;
  if (is_child) return;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  /* Another thread may be writing. When hardly any place is left, this one has to wait for it. */
  if (pthread_mutex_trylock(&lock) == 0 ||
      (eb_trace_num_unwritten() > EB_TRACE_RING - EB_TRACE_RING / 8 && pthread_mutex_lock(&lock) == 0)) {
    if (eb_trace_num_unwritten() >= EB_TRACE_RING / 2) write_trace();
    pthread_mutex_unlock(&lock);
  }
  (void)pthread_setcancelstate(cancel_state, NULL);
}

/* Until the next writing. */
static uint64_t interval_ticks(uint64_t now) {
  const double run_s = (double)(now - begin_ticks) * eb_recorder_tick_s(), part_s = run_s * INTERVAL_OF_RUN;
  return (uint64_t)((part_s > MIN_INTERVAL_S ? part_s : MIN_INTERVAL_S) / eb_recorder_tick_s());
}

static void set_keeping(eb_thread *thread, uint64_t began_ticks) {
  const uint64_t now = eb_recorder_ticks(), most = (uint64_t)(1 / MAX_KEEPING_OF_RUN);
  const uint64_t num = __atomic_add_fetch(&num_kept, 1, __ATOMIC_RELAXED);
  thread->keep_ticks = now + (eb_file_is_local() ? (now - began_ticks) * (num < most ? num : most) : interval_ticks(now));
}

/* Without what is kept nothing would be known of a rank that hangs in its first calls. */
void eb_recorder_keep(eb_thread *thread) {
  const uint64_t now = eb_recorder_ticks();
  int cancel_state;
  if (is_child) return;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  if (pthread_mutex_trylock(&lock) == 0) {
    write_communicators();
    write_places();
    write_phases();
    keep();
    write_trace();
    eb_page_write(now);
    pthread_mutex_unlock(&lock);
  }
  (void)pthread_setcancelstate(cancel_state, NULL);
  set_keeping(thread, now);
}

void eb_recorder_write(eb_thread *thread) {
  const uint64_t now = eb_recorder_ticks();
  const double run_s = (double)(now - begin_ticks) * eb_recorder_tick_s();
  thread->due_ticks = now + interval_ticks(now);
  if (is_child) return;
  /* A receive that is never completed keeps an epoch open for the whole run, and a killed rank would leave nothing. */
  const double open_s = thread->epoch.begin_ticks ? (double)(now - thread->epoch.begin_ticks) * eb_recorder_tick_s() : 0;
  if (open_s > LONGEST_EPOCH_S && open_s > run_s / 2) eb_epoch_cut(&thread->epoch, &thread->table);
  int cancel_state;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* a cancelled thread would keep the lock */
  pthread_mutex_lock(&lock);
  write_communicators();
  write_places();
  write_phases();
  write_entries(thread, false);
  write_phase_totals(thread, false);
  write_arrivals(thread);
  eb_epoch_rest(&thread->epoch);
  keep(); /* of others, which may hang, and of this thread's epoch */
  eb_epoch_resume(&thread->epoch);
  write_trace();
  eb_page_write(now);
  pthread_mutex_unlock(&lock);
  (void)pthread_setcancelstate(cancel_state, NULL);
  set_keeping(thread, now);
}

/* Processes with the same identity of the boot have the same CLOCK_MONOTONIC. */
static void read_boot(char *boot, size_t bytes) {
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
  if (!file) return;
  if (fgets(boot, (int)bytes, file)) boot[strcspn(boot, "\n")] = '\0';
  fclose(file);
}

static void write_header(int rank, int size) {
  char host[256] = "", boot[64] = "", version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length, level = MPI_THREAD_SINGLE;
  struct timespec now;
  eb_payload payload = {0};
  eb_host_name(host, sizeof host);
  read_boot(boot, sizeof boot);
  (void)PMPI_Get_library_version(version, &length);
  version[strcspn(version, "\n")] = '\0';
  (void)PMPI_Query_thread(&level);
  clock_gettime(CLOCK_REALTIME, &now);
  const char *name = level == MPI_THREAD_MULTIPLE     ? "multiple"
                     : level == MPI_THREAD_SERIALIZED ? "serialized"
                     : level == MPI_THREAD_FUNNELED   ? "funneled"
                                                      : "single";
  eb_payload_print(&payload, "{\"kind\":\"header\",\"schema\":\"earlybird.recording/1\",\"rank\":%d,\"size\":%d,\"pid\":%ld", rank,
                   size, (long)getpid());
  eb_payload_print(&payload, ",\"begin_s\":%lld.%09ld,\"thread_level\":\"%s\",\"host\":", (long long)now.tv_sec, now.tv_nsec, name);
  eb_payload_string(&payload, host);
  eb_payload_print(&payload, ",\"boot\":");
  eb_payload_string(&payload, boot);
  eb_payload_print(&payload, ",\"mpi\":");
  eb_payload_string(&payload, version);
  eb_payload_print(&payload, ",\"calls\":[");
  for (unsigned c = 0; c < eb_call_num(); c++) eb_payload_print(&payload, "%s\"%s\"", c ? "," : "", eb_calls_begin[c].name);
  eb_payload_print(&payload, "]");
  eb_settings_print(&payload);
  eb_payload_print(&payload, "}");
  eb_file_append(EB_CHUNK_JSON, &payload);
}

static void disown_file(void) {
  is_child = true;
  eb_recorder_is_on = eb_recorder_is_quick = false;
}

/* That of the recording with another suffix. */
static void name_beside(char path[4096], const char *suffix) {
  const char *recording = eb_file_path();
  snprintf(path, 4096, "%.*s.%s", (int)(strrchr(recording, '.') - recording), recording, suffix);
}

/* `EARLYBIRD_RECORD_NODE` is that of the reader: the identity of its boot, and the number of its namespace of processes, in which
 * alone it sees whether a process lives. */
static bool is_on_node_of_reader(void) {
  char boot[64] = "", node[128];
  struct stat space;
  const char *of_reader = getenv("EARLYBIRD_RECORD_NODE");
  if (!of_reader || !*of_reader) return true;
  read_boot(boot, sizeof boot);
  if (stat("/proc/self/ns/pid", &space) != 0) return false;
  snprintf(node, sizeof node, "%s:%llu", boot, (unsigned long long)space.st_ino);
  return strcmp(node, of_reader) == 0;
}

/* `EARLYBIRD_RECORD_EVENTS`: how many are kept; or all, as far as EARLYBIRD_RECORD_EVENTS_BYTES of each node suffice. */
static void begin_trace(int num_ranks) {
  char path[4096];
  const char *events = getenv("EARLYBIRD_RECORD_EVENTS"), *bytes = getenv("EARLYBIRD_RECORD_EVENTS_BYTES");
  const bool are_all = events && strcmp(events, "all") == 0;
  uint64_t num = events ? strtoull(events, NULL, 10) : 0;
  if (are_all) {
    const uint64_t of_node = bytes ? strtoull(bytes, NULL, 10) : 0;
    num = of_node / eb_settings_num_local((uint64_t)num_ranks) / sizeof(eb_traced);
    if (num == 0) num = 1;
  }
  if (num == 0) return;
  name_beside(path, "trace");
  eb_trace_create(path, num, eb_recorder_tick_s(), eb_requests_are_shared);
}

/* Of this thread so far. False where the kernel does not count it. */
static bool read_times(thread_times *times) {
  char text[128], *rest;
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t length = read(file, text, sizeof text - 1);
  (void)close(file);
  if (length <= 0) return false;
  text[length] = '\0';
  times->ran_ns = strtoull(text, &rest, 10);
  times->core_wait_ns = strtoull(rest, NULL, 10);
  return times->ran_ns > 0;
}

/* Less than at the beginning: another kernel counts, as after a restart from a checkpoint. */
static void print_times(eb_payload *payload) {
  thread_times now;
  if (!knows_times || syscall(SYS_gettid) != begin_thread || !read_times(&now) || now.ran_ns < begin_times.ran_ns ||
      now.core_wait_ns < begin_times.core_wait_ns)
    return;
  print_seconds(payload, "core_wait_s", now.core_wait_ns - begin_times.core_wait_ns);
  print_seconds(payload, "ran_s", now.ran_ns - begin_times.ran_ns);
  if (eb_thread_current) print_seconds(payload, "joined_s", nanoseconds(eb_thread_current->joined_ticks));
}

bool eb_recorder_is_of_first_thread(void) { return syscall(SYS_gettid) == begin_thread; }

static bool is_set(const char *variable) {
  const char *value = getenv(variable);
  return value && *value;
}

static bool expects_threads;

void eb_recorder_expect_threads(void) {
  expects_threads = true;
  if (!eb_recorder_is_on) return;
  eb_recorder_is_quick = false;
  eb_requests_are_shared = eb_page_is_shared = true;
  eb_page_current->awaited.is_concurrent = true;
}

void eb_recorder_begin(void) {
  const char *folder = getenv("EARLYBIRD_RECORD");
  int rank, size, level;
  eb_sends_are_synchronous = is_set("EARLYBIRD_RECORD_SYNCHRONOUS"); /* also without a recording */
  eb_recorder_keeps_only_pages = is_set("EARLYBIRD_RECORD_PAGES");
  if (eb_recorder_keeps_only_pages) eb_clock.tick_s = 0; /* the time of whoever watches is that of the system's clock */
  if (!folder || !*folder || eb_recorder_is_on || !eb_communicators_begin() ||
      PMPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS || PMPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS ||
      !eb_file_create(folder, rank))
    return;
  begin_ticks = eb_recorder_ticks();
  begin_thread = syscall(SYS_gettid);
  knows_times = read_times(&begin_times);
  if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) program[0] = '\0';
  eb_requests_are_shared = expects_threads || (PMPI_Query_thread(&level) == MPI_SUCCESS && level >= MPI_THREAD_SERIALIZED);
  write_header(rank, size);
  write_modules();
  begin_trace(size);
  eb_requests_include_others = (eb_requests_are_shared && eb_recorder_counts()) || eb_trace_is_on();
  char path[4096];
  name_beside(path, "open");
  eb_page_is_shared = eb_requests_are_shared;
  eb_page_create(path, eb_file_is_local() && is_on_node_of_reader(), eb_recorder_tick_s(), begin_ticks);
  eb_page_current->awaited.rank = rank;
  eb_page_current->awaited.size = size;
  eb_page_current->awaited.is_concurrent = eb_requests_are_shared;
  name_beside(path, "pages");
  eb_page_show(path, (uint64_t)size / eb_settings_num_local((uint64_t)size));
  eb_usual_types_begin();
  eb_calls_begin_numbers();
  eb_requests_begin();
  eb_recorder_is_quick = eb_recorder_keeps_only_pages && !eb_page_is_shared;
  (void)pthread_atfork(NULL, NULL, disown_file);
  __atomic_store_n(&eb_recorder_is_on, true, __ATOMIC_RELEASE);
}

void eb_recorder_end_epoch(eb_thread *thread) {
  if (is_child) return;
  pthread_mutex_lock(&lock);
  eb_epoch_end(&thread->epoch, &thread->table);
  pthread_mutex_unlock(&lock);
}

/* At MPI_Finalize no other thread calls the MPI. At the other ends one may be in the middle of a call. */
static void end_epochs(const char *how) {
  const bool are_others_idle = strcmp(how, "finalize") == 0;
  for (eb_thread *thread = eb_threads_first(); thread; thread = thread->next)
    if (thread == eb_thread_current || are_others_idle) eb_epoch_end(&thread->epoch, &thread->table);
}

/* A signal handler that ends the program may have interrupted this thread while it writes: then it must not wait for itself. */
static bool lock_to_write(const char *how) {
  if (!how || strcmp(how, "finalize") == 0) return pthread_mutex_lock(&lock) == 0;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += LONGEST_WAIT_S;
  return pthread_mutex_timedlock(&lock, &until) == 0;
}

static void write_all(const char *how) {
  if (how) end_epochs(how);
  write_communicators();
  write_places();
  write_phases();
  for (eb_thread *thread = eb_threads_first(); thread; thread = thread->next) {
    write_entries(thread, false);
    write_phase_totals(thread, how != NULL);
    write_arrivals(thread);
  }
  write_trace();
  if (how) {
    eb_payload payload = {0};
    eb_payload_print(&payload, "{\"kind\":\"end\",\"how\":\"%s\"", how);
    print_seconds(&payload, "run_s", nanoseconds(eb_recorder_ticks() - begin_ticks));
    print_times(&payload);
    eb_payload_print(&payload, "}");
    eb_file_append(EB_CHUNK_JSON, &payload);
    eb_page_remove();
  }
  keep(); /* other threads may be in calls */
}

void eb_recorder_flush(const char *how) {
  if (!eb_recorder_is_on || is_child) return;
  if (how) {
    eb_recorder_is_quick = false;
    __atomic_store_n(&eb_recorder_is_on, false, __ATOMIC_RELEASE);
  }
  int cancel_state;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  if (lock_to_write(how)) {
    write_all(how);
    pthread_mutex_unlock(&lock);
  }
  (void)pthread_setcancelstate(cancel_state, NULL);
}

/* A program that ends without MPI_Finalize, or that has called the MPI past the recorder: one that was loaded later, such as
 * that of a Python program, was not known when the process began. */
__attribute__((destructor)) static void end(void) {
  int (*is_initialised)(int *) = (int (*)(int *))dlsym(RTLD_DEFAULT, "PMPI_Initialized");
  int is = 0;
  eb_recorder_flush("exit");
  if (begin_ticks == 0 && !is_child && is_initialised && is_initialised(&is) == MPI_SUCCESS && is) eb_hidden_report(true);
}
