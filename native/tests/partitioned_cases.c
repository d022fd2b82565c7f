/* Runs named cases of partitioned communication: partitioned_cases [--level LEVEL] [--list] [CASE...] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "report.h"

static const struct test_case *const families[] = {
    order_cases,  type_cases,   communicator_cases, matching_cases, mixture_cases,  progress_cases, error_cases,
    ending_cases, thread_cases, level_cases,        lane_cases,     counting_cases, memory_cases,   size_cases};
enum { NUM_FAMILIES = sizeof families / sizeof families[0] };

/* Cases after `--` are those to leave out; without a name all are chosen that ask for nothing special. */
static bool is_chosen(const struct test_case *one, bool special, char **names, int num_names) {
  bool leaves_out = false, chosen = num_names == 0 || strcmp(names[0], "--") == 0;
  if (chosen && special) chosen = false;
  for (int i = 0; i < num_names; i++) {
    if (strcmp(names[i], "--") == 0) leaves_out = true;
    if (strcmp(names[i], one->name) == 0) chosen = !leaves_out;
  }
  return chosen;
}

static int level_of(const char *name) {
  static const char *const names[] = {"single", "funneled", "serialized", "multiple"};
  const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
  for (int i = 0; i < 4; i++)
    if (strcmp(name, names[i]) == 0) return levels[i];
  fprintf(stderr, "partitioned_cases: no thread level is called %s\n", name);
  exit(2);
}

static bool run_case(const struct test_case *one, struct context *context) {
  report_case_begin(one->name, one->seconds);
  /* The library has canonical tags on MPI_COMM_WORLD; on this duplicate, requests are announced. */
  const bool is_duplicate = environment_number("EARLYBIRD_TESTS_DUPLICATE", 0);
  int code = MPI_SUCCESS;
  context->world = MPI_COMM_WORLD;
  if (is_duplicate) code = MPI_Comm_dup(MPI_COMM_WORLD, &context->world);
  if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(context->world, MPI_ERRORS_RETURN);
  if (code != MPI_SUCCESS) {
    case_mpi_failed(__FILE__, __LINE__, "MPI_Comm_dup", code);
    return report_case_end();
  }
  one->run(context);
  const bool ok = report_case_end();
  if (is_duplicate) MPI_Comm_free(&context->world);
  return ok;
}

int main(int argc, char **argv) {
  int level = MPI_THREAD_MULTIPLE, first = 1;
  for (; first < argc && strncmp(argv[first], "--", 2) == 0 && argv[first][2]; first++) {
    if (strcmp(argv[first], "--level") == 0 && first + 1 < argc) {
      level = level_of(argv[++first]);
    } else if (strcmp(argv[first], "--list") == 0) {
      for (int f = 0; f < NUM_FAMILIES; f++)
        for (const struct test_case *one = families[f]; one->name; one++)
          if (families[f] != size_cases) puts(one->name);
      return 0;
    } else {
      fprintf(stderr, "partitioned_cases: unknown option %s\n", argv[first]);
      return 2;
    }
  }
  struct context context = {.level = level};
  if (MPI_Init_thread(&argc, &argv, level, &context.level) != MPI_SUCCESS) return 1;
  MPI_Comm reports;
  if (MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
      MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
      MPI_Comm_rank(MPI_COMM_WORLD, &context.rank) != MPI_SUCCESS ||
      MPI_Comm_size(MPI_COMM_WORLD, &context.num_ranks) != MPI_SUCCESS || MPI_Comm_dup(MPI_COMM_WORLD, &reports) != MPI_SUCCESS)
    return 1;
  report_begin(reports);
  if (take_tags() != MPI_SUCCESS) return 1;
  int num_failed = 0;
  for (int f = 0; f < NUM_FAMILIES; f++)
    for (const struct test_case *one = families[f]; one->name; one++)
      if (is_chosen(one, families[f] == size_cases, argv + first, argc - first) && !run_case(one, &context)) num_failed++;
  report_case_begin("finalize_returns", 0);
  if (free_tags() != MPI_SUCCESS) num_failed++;
  if (MPI_Comm_free(&reports) != MPI_SUCCESS || MPI_Finalize() != MPI_SUCCESS) num_failed++;
  if (context.rank == 0) puts("ok finalize_returns (0 s)");
  return num_failed ? 1 : 0;
}
