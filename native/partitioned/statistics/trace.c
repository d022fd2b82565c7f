/* Keeps events as text; rank 0 writes the trace file. */
#include "partitioned/statistics/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "partitioned/domain/domain.h"
#include "partitioned/process/clock.h"
#include "partitioned/process/host.h"
#include "partitioned/process/world.h"
#include "partitioned/segmentation/c_locale.h"

/* 100 MB of text per rank; later events are counted and reported. */
#define MAX_TRACE_BYTES (100u << 20)

static struct {
  pthread_mutex_t lock;
  char *text;
  size_t length, capacity;
  int64_t lost;
  double realtime_at_zero_s; /* CLOCK_REALTIME where CLOCK_MONOTONIC is 0: one axis for ranks of several nodes */
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool eb_trace_is_on(void) { return eb_world.config.trace[0] != '\0'; }

static void append(const char *line, size_t length) {
  pthread_mutex_lock(&trace.lock);
  if (trace.length + length > trace.capacity) {
    const size_t capacity = trace.capacity ? 2 * trace.capacity : 1u << 16;
    char *grown = capacity <= MAX_TRACE_BYTES ? realloc(trace.text, capacity) : NULL;
    if (grown) {
      trace.text = grown;
      trace.capacity = capacity;
    }
  }
  if (trace.length + length <= trace.capacity) {
    memcpy(trace.text + trace.length, line, length);
    trace.length += length;
  } else {
    trace.lost++;
  }
  pthread_mutex_unlock(&trace.lock);
}

/* Trace event format: "X" has a duration, "i" none. */
void eb_trace_event(const char *name, const char *arguments, double begin_s, double duration_s) {
  char line[512], kind[48] = "\"ph\":\"i\",\"s\":\"t\"";
  if (!eb_trace_is_on()) return;
  const eb_c_locale locale = eb_c_locale_begin();
  if (duration_s >= 0) snprintf(kind, sizeof kind, "\"ph\":\"X\",\"dur\":%.3f", duration_s * 1e6);
  const double ts_us = (trace.realtime_at_zero_s + begin_s) * 1e6;
  const int length = snprintf(line, sizeof line, "{\"name\":\"%s\",%s,\"ts\":%.3f,\"pid\":%d,\"tid\":%ld,\"args\":{%s}},\n", name,
                              kind, ts_us, eb_world.rank, (long)gettid(), arguments);
  eb_c_locale_end(locale);
  append(line, (size_t)length);
}

/* What a viewer calls this process. */
static void add_name(void) {
  char line[200], host[64] = "";
  eb_host_name(host, sizeof host);
  const int rank = eb_world.rank;
  const char *const form = "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"rank %d on %s\"}},\n";
  const int length = snprintf(line, sizeof line, form, rank, rank, host);
  append(line, (size_t)length);
}

void eb_trace_begin(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  trace.realtime_at_zero_s = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - eb_now_s();
  if (eb_trace_is_on()) add_name();
}

/* Writes through a temporary file, so that a trace is whole or absent. */
static void write_trace(const char *text, const int *lengths, int64_t lost) {
  char temporary[1100];
  snprintf(temporary, sizeof temporary, "%s.part", eb_world.config.trace);
  /* In a shared folder, such as /tmp, a link of this name could be another user's: none is followed. */
  (void)unlink(temporary);
  const int descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
  if (descriptor >= 0 && !file) close(descriptor);
  bool written = file != NULL;
  size_t total = 0;
  for (int r = 0; r < eb_domain.size; r++) total += (size_t)lengths[r];
  if (total >= 2) total -= 2; /* the last comma and its line's end */
  written = written && fprintf(file, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n") > 0 &&
            fwrite(text, 1, total, file) == total && fprintf(file, "\n]}\n") > 0;
  int why = written ? 0 : errno ? errno : EIO;
  if (file && fclose(file) != 0 && why == 0) why = errno;
  if (why == 0 && rename(temporary, eb_world.config.trace) != 0) why = errno;
  if (why != 0) {
    if (file) remove(temporary);
    fprintf(stderr, "earlybird: cannot write the trace %s (%s); the program is not affected\n", eb_world.config.trace,
            strerror(why));
  }
  if (lost > 0) fprintf(stderr, "earlybird: the trace omits %lld events of ranks that exceeded 100 MB\n", (long long)lost);
}

static void gather_trace(void) {
  int length = (int)trace.length, *lengths = NULL, *starts = NULL;
  char *all = NULL;
  int64_t lost = 0, total = 0;
  PMPI_Reduce(&trace.lost, &lost, 1, MPI_INT64_T, MPI_SUM, 0, eb_domain.comm);
  if (eb_domain.rank == 0) {
    lengths = malloc((size_t)eb_domain.size * sizeof *lengths);
    starts = malloc((size_t)eb_domain.size * sizeof *starts);
  }
  int fits = eb_domain.rank != 0 || (lengths && starts);
  PMPI_Bcast(&fits, 1, MPI_INT, 0, eb_domain.comm);
  if (!fits || PMPI_Gather(&length, 1, MPI_INT, lengths, 1, MPI_INT, 0, eb_domain.comm) != MPI_SUCCESS) {
    free(lengths);
    free(starts);
    return;
  }
  if (eb_domain.rank == 0) {
    for (int r = 0; r < eb_domain.size; r++) {
      starts[r] = (int)total; /* an int's worth, checked below */
      total += lengths[r];
    }
    all = total <= INT32_MAX ? malloc((size_t)total + 1) : NULL;
  }
  fits = eb_domain.rank != 0 || all != NULL;
  PMPI_Bcast(&fits, 1, MPI_INT, 0, eb_domain.comm);
  if (fits && PMPI_Gatherv(trace.text, length, MPI_CHAR, all, lengths, starts, MPI_CHAR, 0, eb_domain.comm) == MPI_SUCCESS &&
      eb_domain.rank == 0)
    write_trace(all, lengths, lost);
  if (!fits && eb_domain.rank == 0)
    fprintf(stderr, "earlybird: the trace exceeds 2 GB and is not written; trace fewer starts or fewer ranks\n");
  free(all);
  free(lengths);
  free(starts);
}

void eb_trace_end(void) {
  if (eb_trace_is_on()) gather_trace();
  free(trace.text);
  trace.text = NULL;
  trace.length = trace.capacity = 0;
}
