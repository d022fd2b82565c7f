/* Collects events and sums per rank; rank 0 writes them at MPI_Finalize. */
#include "partitioned/statistics/record.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "partitioned/domain/domain.h"
#include "partitioned/process/world.h"

/* 100 MB of text per rank; later events are counted and reported. */
#define MAX_TRACE_BYTES (100u << 20)

bool eb_record_on;

typedef struct {
  int64_t requests, starts, partitions, segments, bytes;
  double early_s; /* summed over segments: from a segment's sending to the last Pready of its start */
} sums;

static struct {
  pthread_mutex_t lock;
  char *text;
  size_t length, capacity;
  int64_t lost;
  double realtime_at_zero_s; /* CLOCK_REALTIME where CLOCK_MONOTONIC is 0: one axis for ranks of several nodes */
  sums sent, received;
} record = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool traces(void) { return eb_world.config.trace[0] != '\0'; }

static void append(const char *line, size_t length) {
  pthread_mutex_lock(&record.lock);
  if (record.length + length > record.capacity) {
    const size_t capacity = record.capacity ? 2 * record.capacity : 1u << 16;
    char *grown = capacity <= MAX_TRACE_BYTES ? realloc(record.text, capacity) : NULL;
    if (grown) {
      record.text = grown;
      record.capacity = capacity;
    }
  }
  if (record.length + length <= record.capacity) {
    memcpy(record.text + record.length, line, length);
    record.length += length;
  } else {
    record.lost++;
  }
  pthread_mutex_unlock(&record.lock);
}

/* One event of the trace event format: "X" has a duration, "i" none. */
static void add_event(const char *name, const char *arguments, double begin_s, double duration_s) {
  char line[512];
  const double ts_us = (record.realtime_at_zero_s + begin_s) * 1e6;
  int length;
  if (!traces()) return;
  if (duration_s >= 0)
    length = snprintf(line, sizeof line, "{\"name\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%d,\"tid\":%ld,\"args\":{%s}},\n",
                      name, ts_us, duration_s * 1e6, eb_world.rank, (long)gettid(), arguments);
  else
    length = snprintf(line, sizeof line, "{\"name\":\"%s\",\"ph\":\"i\",\"s\":\"t\",\"ts\":%.3f,\"pid\":%d,\"tid\":%ld,\"args\":{%s}},\n",
                      name, ts_us, eb_world.rank, (long)gettid(), arguments);
  append(line, (size_t)length);
}

/* What a viewer calls this process. */
static void add_name(void) {
  char line[200], host[64] = "";
  gethostname(host, sizeof host - 1);
  const int length = snprintf(line, sizeof line, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"rank %d on %s\"}},\n",
                              eb_world.rank, eb_world.rank, host);
  append(line, (size_t)length);
}

void eb_record_begin(void) {
  struct timespec now;
  eb_record_on = eb_world.config.statistics || traces();
  clock_gettime(CLOCK_REALTIME, &now);
  record.realtime_at_zero_s = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - eb_now_s();
  if (traces()) add_name();
}

static void describe(char *text, size_t size, const eb_channel *channel, const char *what, int index, int64_t bytes) {
  snprintf(text, size, "\"%s\":%d,\"bytes\":%lld,\"peer\":%d,\"tag\":%d,\"start\":%llu", what, index, (long long)bytes,
           channel->peer, channel->tag, (unsigned long long)channel->num_starts);
}

static int64_t segment_bytes(const eb_channel *channel, int segment) {
  return channel->segments.first_byte[segment + 1] - channel->segments.first_byte[segment];
}

void eb_record_made(const eb_channel *channel) {
  if (!eb_record_on) return;
  pthread_mutex_lock(&record.lock);
  (channel->is_send ? &record.sent : &record.received)->requests++;
  pthread_mutex_unlock(&record.lock);
}

void eb_record_pready(eb_channel *channel, int partition) {
  char text[200];
  const double now_s = eb_now_s();
  atomic_store_explicit(&channel->last_pready_s, now_s, memory_order_relaxed);
  describe(text, sizeof text, channel, "partition", partition, channel->partition_bytes);
  add_event("pready", text, now_s, -1);
}

void eb_record_segment_sent(eb_channel *channel, int segment, double begin_s) {
  char text[200];
  channel->states[segment].issued_s = begin_s;
  describe(text, sizeof text, channel, "segment", segment, segment_bytes(channel, segment));
  add_event("segment send", text, begin_s, eb_now_s() - begin_s);
}

void eb_record_segment_arrived(const eb_channel *channel, int segment) {
  char text[200];
  if (!eb_record_on) return;
  describe(text, sizeof text, channel, "segment", segment, segment_bytes(channel, segment));
  add_event("segment arrival", text, eb_now_s(), -1);
}

void eb_record_waited(const eb_channel *channel, double begin_s) {
  char text[200];
  describe(text, sizeof text, channel, "segments", channel->segments.num, channel->total_bytes);
  add_event(channel->is_send ? "wait for send" : "wait for receive", text, begin_s, eb_now_s() - begin_s);
}

void eb_record_finished(const eb_channel *channel) {
  double early_s = 0;
  for (int s = 0; channel->is_send && s < channel->segments.num; s++)
    early_s += atomic_load_explicit(&channel->last_pready_s, memory_order_relaxed) - channel->states[s].issued_s;
  pthread_mutex_lock(&record.lock);
  sums *sum = channel->is_send ? &record.sent : &record.received;
  sum->starts++;
  sum->partitions += channel->num_partitions;
  sum->segments += channel->segments.num;
  sum->bytes += channel->total_bytes;
  if (early_s > 0) sum->early_s += early_s;
  pthread_mutex_unlock(&record.lock);
}

static void print_row(int rank, const char *side, const sums *sum) {
  if (sum->requests == 0) return;
  fprintf(stderr, "%6d %9s %9lld %9lld %11lld %10lld %15lld", rank, side, (long long)sum->requests, (long long)sum->starts,
          (long long)sum->partitions, (long long)sum->segments, (long long)sum->bytes);
  if (sum->segments > 0 && side[0] == 's') fprintf(stderr, " %12.1f", 1e6 * sum->early_s / (double)sum->segments);
  fputc('\n', stderr);
}

/* As EARLYBIRD_COSTS takes them: what was measured here can be given to the next run. */
static void print_costs(void) {
  const eb_cost *costs[] = {&eb_world.config.intra_node, &eb_world.config.inter_node};
  const char *names[] = {"intra_node_protocols", "inter_node_protocols"};
  fprintf(stderr, "message costs used: EARLYBIRD_COSTS=\"");
  for (int level = 0; level < 2; level++) {
    for (int p = 0; p < costs[level]->num; p++) {
      const eb_protocol *protocol = &costs[level]->protocols[p];
      if (p == 0) fprintf(stderr, "%s%s=", level && costs[0]->num ? " " : "", names[level]);
      fprintf(stderr, "%s%lld:%.3g:%.3g:%.3g", p ? "," : "", (long long)protocol->min_bytes, protocol->latency_s,
              protocol->overhead_s, protocol->bandwidth_bytes_per_s);
    }
  }
  fprintf(stderr, "\"\n");
}

static void print_table(void) {
  struct {
    int rank;
    sums sent, received;
  } mine = {eb_world.rank, record.sent, record.received}, *all = NULL;
  if (eb_domain.rank == 0) all = malloc((size_t)eb_domain.size * sizeof mine);
  if (PMPI_Gather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, 0, eb_domain.comm) == MPI_SUCCESS && all) {
    fprintf(stderr, "earlybird: partitioned communication\n%6s %9s %9s %9s %11s %10s %15s %12s\n", "rank", "side", "requests",
            "starts", "partitions", "segments", "bytes", "us early");
    for (int r = 0; r < eb_domain.size; r++) {
      print_row(all[r].rank, "sends", &all[r].sent);
      print_row(all[r].rank, "receives", &all[r].received);
    }
    fprintf(stderr, "us early: mean time from the send of a segment until the last partition of the same start was ready\n");
    print_costs();
  }
  free(all);
}

/* Writes through a temporary file, so that a trace is whole or absent. */
static void write_trace(const char *text, const int *lengths, int64_t lost) {
  char temporary[1100];
  snprintf(temporary, sizeof temporary, "%s.part", eb_world.config.trace);
  FILE *file = fopen(temporary, "w");
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
  if (lost > 0)
    fprintf(stderr, "earlybird: the trace omits %lld events of ranks that exceeded 100 MB\n", (long long)lost);
}

static void gather_trace(void) {
  int length = (int)record.length, *lengths = NULL, *starts = NULL;
  char *all = NULL;
  int64_t lost = 0, total = 0;
  PMPI_Reduce(&record.lost, &lost, 1, MPI_INT64_T, MPI_SUM, 0, eb_domain.comm);
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
  if (fits && PMPI_Gatherv(record.text, length, MPI_CHAR, all, lengths, starts, MPI_CHAR, 0, eb_domain.comm) == MPI_SUCCESS &&
      eb_domain.rank == 0)
    write_trace(all, lengths, lost);
  if (!fits && eb_domain.rank == 0)
    fprintf(stderr, "earlybird: the trace exceeds 2 GB and is not written; trace fewer starts or fewer ranks\n");
  free(all);
  free(lengths);
  free(starts);
}

void eb_record_end(void) {
  if (eb_world.config.statistics) print_table();
  if (traces()) gather_trace();
  free(record.text);
  record.text = NULL;
  record.length = record.capacity = 0;
  eb_record_on = false;
}
