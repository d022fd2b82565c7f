/* What every family of cases shares: how a case is declared, how it fails, and one side of a partitioned transfer. */
#ifndef EARLYBIRD_TESTS_CASE_H
#define EARLYBIRD_TESTS_CASE_H

#if __has_include(<earlybird.h>)
#include <earlybird.h>
#else
#include <mpi.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* MPI 4.0's header says so of Open MPI 5.0 only by its calls; the calls themselves are probed by CMake. */
#define MPI_AT_LEAST(major, minor) (MPI_VERSION * 100 + MPI_SUBVERSION >= (major) * 100 + (minor))

/* A case runs on every rank. Errors are returned on `world`, MPI_COMM_WORLD and MPI_COMM_SELF. */
struct context {
  MPI_Comm world; /* MPI_COMM_WORLD, or a duplicate of it, fresh for the case */
  int rank, num_ranks;
  int level; /* the thread level that was given */
};

struct test_case {
  const char *name; /* the behaviour it holds the library to */
  void (*run)(const struct context *context);
  int seconds; /* the case is taken to hang after this time; 0 is the usual limit */
};

/* The MPI is in a call, and may access the memory of memory_cases.c that stands for a device's; no effect in other cases. */
void open_device(void);
void close_device(void);

/* For counting_cases.c: the library packs something. */
void note_packed(void);

/* For lane_cases.c: a nonblocking or persistent send or receive of so many elements on this communicator; a message is being
 * sent. */
void note_message(const void *data, int count, MPI_Comm comm, bool is_sent);
void note_sending(void);

/* Each family ends with a case without a name. */
extern const struct test_case order_cases[], type_cases[], communicator_cases[], matching_cases[], mixture_cases[],
    progress_cases[], error_cases[], ending_cases[], thread_cases[], level_cases[], memory_cases[], lane_cases[], counting_cases[],
    size_cases[];

/* Remembers the first reason on this rank why the case fails; the case goes on, so that no other rank waits. */
void case_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The case does not apply; every rank must say so. */
void case_skip(const char *why);
bool case_failed(void);

#define EXPECT(condition, ...)                                    \
  do {                                                            \
    if (!(condition)) case_fail(__FILE__, __LINE__, __VA_ARGS__); \
  } while (0)

/* An MPI call that must succeed. */
#define MPI(call)                                                                \
  do {                                                                           \
    const int code_ = (call);                                                    \
    if (code_ != MPI_SUCCESS) case_mpi_failed(__FILE__, __LINE__, #call, code_); \
  } while (0)
void case_mpi_failed(const char *file, int line, const char *call, int code);
int error_class(int code);

/* Deterministic numbers: equal seeds give equal series on every rank. */
uint64_t random_next(uint64_t *state);
int random_below(uint64_t *state, int bound);
void random_shuffle(uint64_t *state, int *values, int count);

/* Bytes that depend on iteration, channel and offset. */
void pattern_fill(unsigned char *bytes, size_t size, uint64_t iteration, uint64_t channel);
/* The offset of the first byte that differs from the pattern of [from, to), or -1. */
ptrdiff_t pattern_first_wrong(const unsigned char *bytes, size_t from, size_t to, uint64_t iteration, uint64_t channel);

struct shape {
  int num_partitions;
  MPI_Count count; /* elements of a partition */
  MPI_Datatype type;
};

/* One side of a transfer with the memory it owns. */
struct side {
  MPI_Request request;
  struct shape shape;
  bool sends;
  unsigned char *memory;   /* what was allocated */
  unsigned char *buffer;   /* the address that is given to MPI: a lower bound may be negative */
  unsigned char *expected; /* receivers: what memory must hold, gaps included */
  size_t span;             /* bytes of memory */
  size_t size;             /* bytes of data */
};

void side_create(struct side *side, struct shape shape, bool sends);
void side_send_init(struct side *side, struct shape shape, int peer, int tag, MPI_Comm comm);
void side_recv_init(struct side *side, struct shape shape, int peer, int tag, MPI_Comm comm);
/* A sender's data of this iteration, or a receiver's memory with every byte wrong. */
void side_prepare(struct side *side, uint64_t iteration, uint64_t channel);
/* Fails the case when a byte of a receiver's memory is wrong; true when all are right. */
bool side_check(struct side *side, uint64_t iteration, uint64_t channel);
/* Frees the request, if there is one, and the memory. */
void side_destroy(struct side *side);

enum order { FORWARD, REVERSE, RANDOM, RANGE, RANGES, LIST, NUM_ORDERS };
/* Makes all partitions ready in this order; the seed is of RANDOM and LIST. */
void pready_all(MPI_Request request, int num_partitions, enum order order, uint64_t seed);

/* Every rank sends to the next rank around `comm` and checks what it receives from the one before. */
struct ring {
  MPI_Comm comm;
  struct shape sends, receives;
  int tag, iterations;
  enum order order;
  MPI_Comm *free_comm;    /* freed right after the initialisation */
  MPI_Datatype *free_type; /* likewise */
};
void ring_run(const struct ring *ring);

/* If EARLYBIRD_TESTS_WITHOUT_TAGS is set: requests that are never matched take all tags that 15 bits leave for announced
 * requests. Return MPI codes. */
int take_tags(void);
int free_tags(void);

/* The environment variable as a number, or `otherwise` when it is not one. */
long environment_number(const char *name, long otherwise);

#endif
