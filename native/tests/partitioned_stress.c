/* Random transfers: partitioned_stress [--transfers N] [--seed S] [--level LEVEL] [--seconds S]

Every rank draws the same channels (peers, tags, shapes, types, communicators) from the seed, and from a series of
its own the order in which it makes, starts, readies and completes them. Every byte is checked. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "report.h"

#ifdef WITH_FORTRAN
extern void mpi_wait_(MPI_Fint *, MPI_Fint *, MPI_Fint *);
#endif

enum { MAX_LIVE = 40, NUM_COMMS = 3, MAX_THREADS = 3, MAX_READY = MAX_LIVE * 16 };

struct channel {
  bool lives, runs; /* runs: takes part in this round */
  int source, target, tag, comm;
  struct shape sends, receives;
  uint64_t id, iteration;
  struct side send, receive; /* of this rank, where it takes part */
};

struct stress {
  int rank, num_ranks, level, tag_bound;
  MPI_Comm comms[NUM_COMMS]; /* the last one has its ranks reversed */
  MPI_Datatype pair;         /* two int with a gap between them */
  struct channel channels[MAX_LIVE];
  uint64_t shared, own; /* the random series shared by all ranks, and that of this rank */
  uint64_t num_made;
};

static int rank_in(const struct stress *s, int comm, int rank) { return comm == NUM_COMMS - 1 ? s->num_ranks - 1 - rank : rank; }

/* A shape of `elements` int in `partitions`, with the gapped type or without. */
static struct shape draw_shape(struct stress *s, int partitions, int elements) {
  const int part = elements / partitions;
  if (random_below(&s->shared, 4) == 0) return (struct shape){partitions, part / 2, s->pair};
  return (struct shape){partitions, part, MPI_INT};
}

static void draw_channel(struct stress *s, struct channel *c) {
  static const int partitions[] = {1, 2, 3, 4, 5, 8, 16};
  const int tags[] = {0, 1, 5, 200, 5000, 70000 < s->tag_bound ? 70000 : 7, s->tag_bound};
  const int senders = partitions[random_below(&s->shared, 7)], receivers = partitions[random_below(&s->shared, 7)];
  const int kind = random_below(&s->shared, 100);
  /* Mostly small, now and then empty, or large enough for several segments and for the MPI's rendezvous. */
  const int unit = kind < 4    ? 0
                   : kind < 80 ? 1 + random_below(&s->shared, 12)
                   : kind < 99 ? random_below(&s->shared, 300)
                               : random_below(&s->shared, 3000);
  *c = (struct channel){.lives = true, .id = s->num_made++};
  c->source = random_below(&s->shared, s->num_ranks);
  c->target = random_below(&s->shared, s->num_ranks);
  c->tag = tags[random_below(&s->shared, 7)];
  c->comm = random_below(&s->shared, NUM_COMMS);
  c->sends = draw_shape(s, senders, senders * receivers * 2 * unit);
  c->receives = draw_shape(s, receivers, senders * receivers * 2 * unit);
}

/* Keys that only the sender knows; some values make no sense. */
static MPI_Info draw_info(struct stress *s) {
  static const char *const values[] = {"1", "2", "3", "5", "16", "0"};
  static const char *const keys[] = {"earlybird_lanes", "earlybird_partitions_per_thread", "earlybird_segments"};
  MPI_Info info;
  if (random_below(&s->own, 3) > 0) return MPI_INFO_NULL;
  MPI(MPI_Info_create(&info));
  for (int k = 0; k < 3; k++)
    if (random_below(&s->own, 2)) MPI(MPI_Info_set(info, keys[k], values[random_below(&s->own, 6)]));
  return info;
}

static void make_send(struct stress *s, struct channel *c) {
  if (c->source != s->rank) return;
  const struct shape *const shape = &c->sends;
  MPI_Info info = draw_info(s);
  side_create(&c->send, *shape, true);
  MPI(MPI_Psend_init(c->send.buffer, shape->num_partitions, shape->count, shape->type, rank_in(s, c->comm, c->target), c->tag,
                     s->comms[c->comm], info, &c->send.request));
  if (info != MPI_INFO_NULL) MPI(MPI_Info_free(&info));
}

static void make_receive(struct stress *s, struct channel *c) {
  if (c->target == s->rank) side_recv_init(&c->receive, c->receives, rank_in(s, c->comm, c->source), c->tag, s->comms[c->comm]);
}

static void free_channel(struct stress *s, struct channel *c) {
  if (c->source == s->rank) side_destroy(&c->send);
  if (c->target == s->rank) side_destroy(&c->receive);
  c->lives = false;
}

/* Frees some channels and makes others; the sides of one channel are made in the order of the draw. */
static void renew_channels(struct stress *s) {
  struct channel *made[MAX_LIVE];
  int num_made = 0;
  const int wanted = 1 + random_below(&s->shared, MAX_LIVE), share = 2 + random_below(&s->shared, 20);
  for (int i = 0; i < MAX_LIVE; i++) {
    struct channel *c = &s->channels[i];
    if (c->lives && random_below(&s->shared, share) == 0) free_channel(s, c);
    if (!c->lives && i < wanted) {
      draw_channel(s, c);
      made[num_made++] = c;
    }
  }
  const int method = random_below(&s->own, 3);
  for (int i = 0; i < num_made; i++) {
    if (method != 1) make_send(s, made[i]);
    if (method == 2) make_receive(s, made[i]);
  }
  for (int i = 0; i < num_made; i++) {
    if (method != 2) make_receive(s, made[i]);
    if (method == 1) make_send(s, made[i]);
  }
}

/* One round's work of this rank. */
struct round {
  MPI_Request requests[2 * MAX_LIVE + 2];
  struct channel *receives[2 * MAX_LIVE + 2]; /* NULL for a send */
  int num_requests;
  struct {
    MPI_Request request;
    int partition;
  } ready[MAX_READY];
  int num_ready, num_threads;
};

struct reader {
  struct round *round;
  int index;
};

static void *make_some_ready(void *argument) {
  const struct reader *reader = argument;
  for (int i = reader->index; i < reader->round->num_ready; i += reader->round->num_threads)
    MPI(MPI_Pready(reader->round->ready[i].partition, reader->round->ready[i].request));
  return NULL;
}

static void start(struct stress *s, struct round *r) {
  r->num_requests = r->num_ready = 0;
  for (int i = 0; i < MAX_LIVE; i++) {
    struct channel *c = &s->channels[i];
    if (!c->runs) continue;
    if (c->source == s->rank) {
      side_prepare(&c->send, c->iteration, c->id);
      r->receives[r->num_requests] = NULL;
      r->requests[r->num_requests++] = c->send.request;
    }
    if (c->target == s->rank) {
      side_prepare(&c->receive, c->iteration, c->id);
      r->receives[r->num_requests] = c;
      r->requests[r->num_requests++] = c->receive.request;
    }
  }
  for (int i = r->num_requests - 1; i > 0; i--) { /* in an order of this rank's own */
    const int j = random_below(&s->own, i + 1);
    const MPI_Request request = r->requests[i];
    struct channel *const channel = r->receives[i];
    r->requests[i] = r->requests[j];
    r->receives[i] = r->receives[j];
    r->requests[j] = request;
    r->receives[j] = channel;
  }
  if (random_below(&s->own, 2) && r->num_requests > 0) {
    MPI(MPI_Startall(r->num_requests, r->requests));
  } else {
    for (int i = 0; i < r->num_requests; i++) MPI(MPI_Start(&r->requests[i]));
  }
}

/* By whole requests, by any of the calls, or partition by partition across all requests and threads. */
static void draw_ready(struct stress *s, struct round *r) {
  const bool whole = random_below(&s->own, 3) == 0;
  for (int i = 0; i < MAX_LIVE; i++) {
    struct channel *c = &s->channels[i];
    if (!c->runs || c->source != s->rank) continue;
    if (whole) {
      pready_all(c->send.request, c->sends.num_partitions, (enum order)random_below(&s->own, NUM_ORDERS), random_next(&s->own));
      continue;
    }
    for (int k = 0; k < c->sends.num_partitions; k++, r->num_ready++) {
      const int j = random_below(&s->own, r->num_ready + 1); /* a shuffle that grows */
      r->ready[r->num_ready] = r->ready[j];
      r->ready[j].request = c->send.request;
      r->ready[j].partition = k;
    }
  }
}

/* As a Fortran part of the program waits for a request that a C part has made; false where there is none. */
static bool wait_in_fortran(MPI_Request *request) {
#ifdef WITH_FORTRAN
  MPI_Fint handle = MPI_Request_c2f(*request), status[64], code;
  mpi_wait_(&handle, status, &code);
  EXPECT(code == MPI_SUCCESS, "MPI_WAIT of Fortran returned %d", (int)code);
  return true;
#else
  (void)request;
  return false;
#endif
}

static void complete(struct stress *s, struct round *r) {
  const int n = r->num_requests, method = random_below(&s->own, 6);
  int index = 0, count = 0, flag = 0, indices[2 * MAX_LIVE + 2];
  if (method == 0) {
    MPI(MPI_Waitall(n, r->requests, MPI_STATUSES_IGNORE));
  } else if (method == 1) {
    while (index != MPI_UNDEFINED && !case_failed()) MPI(MPI_Waitany(n, r->requests, &index, MPI_STATUS_IGNORE));
  } else if (method == 2) {
    while (count != MPI_UNDEFINED && !case_failed()) MPI(MPI_Waitsome(n, r->requests, &count, indices, MPI_STATUSES_IGNORE));
  } else if (method == 3) {
    while (!flag && !case_failed()) MPI(MPI_Testall(n, r->requests, &flag, MPI_STATUSES_IGNORE));
  } else if (method == 4) {
    while (count != MPI_UNDEFINED && !case_failed()) MPI(MPI_Testsome(n, r->requests, &count, indices, MPI_STATUSES_IGNORE));
  } else {
    for (int i = 0; i < n; i++) {
      if (r->receives[i])
        for (int k = r->receives[i]->receives.num_partitions - 1; k >= 0; k -= 3) {
          flag = 0;
          while (!flag && !case_failed()) MPI(MPI_Parrived(r->requests[i], k, &flag));
        }
      if (!wait_in_fortran(&r->requests[i])) MPI(MPI_Wait(&r->requests[i], MPI_STATUS_IGNORE));
    }
  }
}

static int run_round(struct stress *s, struct round *r) {
  int num_transfers = 0, word = s->rank, heard = -1;
  if (random_below(&s->shared, 3) == 0) renew_channels(s);
  const int share = 1 + random_below(&s->shared, 4);
  for (int i = 0; i < MAX_LIVE; i++) {
    s->channels[i].runs = s->channels[i].lives && random_below(&s->shared, share) == 0;
    num_transfers += s->channels[i].runs;
  }
  start(s, r);
  const bool ordinary = random_below(&s->shared, 4) == 0;
  if (ordinary) { /* one with wildcards among them, on the communicator of the transfers */
    r->receives[r->num_requests] = r->receives[r->num_requests + 1] = NULL;
    MPI(MPI_Irecv(&heard, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, s->comms[0], &r->requests[r->num_requests++]));
    MPI(MPI_Isend(&word, 1, MPI_INT, (s->rank + 1) % s->num_ranks, 5, s->comms[0], &r->requests[r->num_requests++]));
  }
  draw_ready(s, r);
  r->num_threads = s->level == MPI_THREAD_MULTIPLE && random_below(&s->own, 8) == 0 ? MAX_THREADS : 1;
  struct reader readers[MAX_THREADS];
  pthread_t threads[MAX_THREADS];
  for (int t = 0; t < r->num_threads; t++) readers[t] = (struct reader){r, t};
  for (int t = 1; t < r->num_threads; t++)
    if (pthread_create(&threads[t], NULL, make_some_ready, &readers[t]) != 0) abort();
  make_some_ready(&readers[0]);
  complete(s, r);
  for (int t = 1; t < r->num_threads; t++) pthread_join(threads[t], NULL);
  EXPECT(!ordinary || heard == (s->rank + s->num_ranks - 1) % s->num_ranks, "an ordinary message is %d", heard);
  for (int i = 0; i < MAX_LIVE; i++) {
    struct channel *c = &s->channels[i];
    if (!c->runs) continue;
    if (c->target == s->rank) side_check(&c->receive, c->iteration, c->id);
    c->iteration++;
  }
  return num_transfers;
}

static void stress(struct stress *s, long num_transfers, uint64_t seed) {
  s->shared = seed;
  s->own = seed * 31 + (uint64_t)s->rank + 1;
  static struct round round;
  long done = 0, rounds = 0;
  while (done < num_transfers && !case_failed()) {
    done += run_round(s, &round);
    /* A rank that found an error stops; the others must not wait for it. */
    if (++rounds % 64 == 0) {
      int any = case_failed();
      MPI(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
      if (any) break;
    }
  }
  for (int i = 0; i < MAX_LIVE; i++)
    if (s->channels[i].lives) free_channel(s, &s->channels[i]);
  if (s->rank == 0) printf("transfers %ld\n", done);
}

int main(int argc, char **argv) {
  static const char *const levels[] = {"single", "funneled", "serialized", "multiple"};
  const int level_values[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
  long num_transfers = 10000, seconds = 60;
  uint64_t seed = 1;
  static struct stress s;
  s.level = MPI_THREAD_MULTIPLE;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--transfers") == 0) num_transfers = atol(argv[i + 1]);
    if (strcmp(argv[i], "--seed") == 0) seed = strtoull(argv[i + 1], NULL, 10);
    if (strcmp(argv[i], "--seconds") == 0) seconds = atol(argv[i + 1]);
    for (int l = 0; l < 4 && strcmp(argv[i], "--level") == 0; l++)
      if (strcmp(argv[i + 1], levels[l]) == 0) s.level = level_values[l];
  }
  MPI_Comm reports;
  int *bound = NULL, flag = 0;
  if (MPI_Init_thread(&argc, &argv, s.level, &s.level) != MPI_SUCCESS ||
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
      MPI_Comm_rank(MPI_COMM_WORLD, &s.rank) != MPI_SUCCESS || MPI_Comm_size(MPI_COMM_WORLD, &s.num_ranks) != MPI_SUCCESS ||
      MPI_Comm_dup(MPI_COMM_WORLD, &reports) != MPI_SUCCESS ||
      MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag) != MPI_SUCCESS)
    return 1;
  s.tag_bound = flag ? *bound : 32767;
  if (s.rank == 0) printf("seed %llu\n", (unsigned long long)seed);
  report_begin(reports);
  report_case_begin("random_transfers_deliver_every_byte", (int)seconds);
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &s.comms[0]));
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &s.comms[1]));
  MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -s.rank, &s.comms[2]));
  MPI(MPI_Type_vector(2, 1, 2, MPI_INT, &s.pair));
  MPI(MPI_Type_commit(&s.pair));
  MPI(take_tags());
  stress(&s, num_transfers, seed);
  MPI(free_tags());
  MPI(MPI_Type_free(&s.pair));
  for (int c = 0; c < NUM_COMMS; c++) MPI(MPI_Comm_free(&s.comms[c]));
  const bool ok = report_case_end();
  if (MPI_Comm_free(&reports) != MPI_SUCCESS || MPI_Finalize() != MPI_SUCCESS) return 1;
  return ok ? 0 : 1;
}
