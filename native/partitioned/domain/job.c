/* Ranks that have the library meet along a binomial tree, which skips ranks without it.
 *
 * Each rank asks the registry about the ranks next to it in the tree, a number that grows with the logarithm of the
 * number of ranks: the parent or children of a rank without the library take over its neighbours.
 */
#include "partitioned/domain/job.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "include/earlybird.h"
#include "partitioned/domain/registry.h"
#include "partitioned/process/world.h"

/* The tag of the messages on MPI_COMM_WORLD; its value is arbitrary, see job.h. */
enum { TAG = 4501 };

static bool is_enlisted;

void eb_job_enlist(void) {
  is_enlisted = true;
  eb_registry_publish();
}

bool eb_job_is_whole(void) {
  const char *text = getenv(EARLYBIRD_ENV_WHOLE_JOB);
  return text && strcmp(text, "1") == 0;
}

typedef struct {
  int rank, size;
  bool (*has)(int rank);
  int parent;    /* -1: the root */
  int *children; /* [num_children] */
  int num_children;
} tree;

static bool everybody_has(int rank) {
  (void)rank;
  return true;
}

static bool has(const tree *of, int rank) { return rank == of->rank || of->has(rank); }

/* The nearest ranks with the library below `above`: its own children, or those of a child without the library. */
static void collect_children(tree *of, int above) {
  for (int bit = 1; above + bit < of->size && (above & bit) == 0; bit <<= 1) {
    const int child = above + bit;
    if (child == of->rank) continue;
    if (has(of, child)) of->children[of->num_children++] = child;
    else collect_children(of, child);
  }
}

/* The nearest rank with the library above this one; where there is none up to rank 0, the lowest that has it is the root
 * of all. */
static void find_place(tree *of) {
  of->parent = -1;
  of->num_children = 0;
  for (int above = of->rank; above > 0;) {
    above &= above - 1; /* without its lowest bit */
    if (!has(of, above)) continue;
    of->parent = above;
    collect_children(of, of->rank);
    return;
  }
  int lowest = 0;
  while (!has(of, lowest)) lowest++;
  if (lowest != of->rank) {
    of->parent = lowest;
  } else if (lowest > 0) {
    collect_children(of, 0); /* all ranks without a parent, except this rank */
  }
  collect_children(of, of->rank);
}

/* Words of a message: whether all are able, then the bits. */
static void meet(const tree *of, uint64_t *words, int num_words, uint64_t *scratch) {
  const int num_bytes = num_words * (int)sizeof *words;
  for (int c = 0; c < of->num_children; c++) {
    PMPI_Recv(scratch, num_bytes, MPI_BYTE, of->children[c], TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    words[0] &= scratch[0];
    for (int w = 1; w < num_words; w++) words[w] |= scratch[w];
  }
  if (of->parent >= 0) {
    PMPI_Send(words, num_bytes, MPI_BYTE, of->parent, TAG, MPI_COMM_WORLD);
    PMPI_Recv(words, num_bytes, MPI_BYTE, of->parent, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int c = 0; c < of->num_children; c++) PMPI_Send(words, num_bytes, MPI_BYTE, of->children[c], TAG, MPI_COMM_WORLD);
}

bool eb_job_meet(bool is_able, eb_members *members, const char **reason) {
  const bool has_registry = eb_registry_is_there();
  tree own = {.has = has_registry ? eb_registry_has : everybody_has};
  *reason = NULL;
  if (has_registry ? !eb_registry_has_published() : !is_enlisted && !eb_job_is_whole()) return false;
  PMPI_Comm_rank(MPI_COMM_WORLD, &own.rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &own.size);
  if (has_registry && own.size > 1 && !eb_registry_is_readable(own.rank)) {
    if (own.rank == 0)
      *reason = "the launcher is of another release than the MPI and does not pass on which ranks have the library, so the "
                "MPI's own partitioned communication is used; start the job with the mpiexec of this MPI";
    return false;
  }
  if (!has_registry && !eb_job_is_whole() && own.size > 1) {
    if (own.rank == 0)
      *reason = "the process manager does not report which ranks have the library, so the MPI's own partitioned "
                "communication is used; if every rank of the job has the library, set " EARLYBIRD_ENV_WHOLE_JOB "=1 on all ranks";
    return false;
  }
  const int num_words = 1 + (own.size + 63) / 64;
  uint64_t *words = calloc(2 * (size_t)num_words, sizeof *words);
  own.children = malloc((size_t)own.size * sizeof *own.children);
  if (!words || !own.children) eb_abort(EB_NO_MEMORY);
  words[0] = is_able;
  if (is_enlisted) words[1 + own.rank / 64] = UINT64_C(1) << own.rank % 64;
  find_place(&own);
  meet(&own, words, num_words, words + num_words);
  const bool begins = words[0] && is_enlisted;
  if (!words[0] && own.parent < 0)
    *reason = "a rank is out of memory for partitioned communication, so all ranks use the MPI's own";
  if (begins) {
    *members = (eb_members){.num_ranks = own.size, .words = malloc((size_t)num_words * sizeof *words)};
    if (!members->words) eb_abort(EB_NO_MEMORY);
    memcpy(members->words, words + 1, (size_t)(num_words - 1) * sizeof *words);
    for (int w = 0; w < num_words - 1; w++) members->num_members += __builtin_popcountll(members->words[w]);
  }
  free(own.children);
  free(words);
  return begins;
}
