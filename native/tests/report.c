/* Remembers why a case fails, agrees on it over all ranks, and reports crashes and hangs. */
#include "report.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "case.h"

enum { USUAL_SECONDS = 10, WHY_LENGTH = 600 };

static MPI_Comm reports;
static int this_rank;
static char case_name[200], why[WHY_LENGTH], why_skipped[WHY_LENGTH];
static bool failed;
static struct timespec began;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* threads of a case may fail at once */

void case_fail(const char *file, int line, const char *format, ...) {
  pthread_mutex_lock(&lock);
  if (!failed) {
    const char *name = strrchr(file, '/');
    const int head = snprintf(why, sizeof why, "rank %d, %s:%d: ", this_rank, name ? name + 1 : file, line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why + head, sizeof why - (size_t)head, format, arguments);
    va_end(arguments);
    failed = true;
  }
  pthread_mutex_unlock(&lock);
}

bool case_failed(void) {
  pthread_mutex_lock(&lock);
  const bool result = failed;
  pthread_mutex_unlock(&lock);
  return result;
}

void case_skip(const char *reason) { snprintf(why_skipped, sizeof why_skipped, "%s", reason); }

/* Only calls that a signal handler may make; one write, so that lines of several ranks do not mix. */
static void on_signal(int number) {
  char line[sizeof case_name + WHY_LENGTH + 100] = "\nfailed ";
  size_t length = strlen(line);
  const char *text = number == SIGALRM ? ": hangs" : number == SIGABRT ? ": aborts" : ": crashes";
  for (const char *part = case_name; *part; part++) line[length++] = *part;
  while (*text) line[length++] = *text++;
  if (failed) {
    line[length++] = ' ';
    line[length++] = '(';
    for (const char *part = why; *part; part++) line[length++] = *part;
    line[length++] = ')';
  }
  line[length++] = '\n';
  const ssize_t written = write(STDOUT_FILENO, line, length);
  _exit(written < 0 ? 4 : 3);
}

void report_begin(MPI_Comm world) {
  reports = world;
  MPI_Comm_rank(world, &this_rank);
  struct sigaction action = {.sa_handler = on_signal};
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, NULL);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  /* The sanitizers print more about a crash than we can. */
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
  sigaction(SIGFPE, &action, NULL);
  sigaction(SIGABRT, &action, NULL);
#endif
}

void report_case_begin(const char *name, int seconds) {
  snprintf(case_name, sizeof case_name, "%s", name);
  failed = false;
  why[0] = why_skipped[0] = 0;
  clock_gettime(CLOCK_MONOTONIC, &began);
  if (this_rank == 0) {
    printf("begin %s\n", name);
    fflush(stdout);
  }
  const long factor = environment_number("EARLYBIRD_TESTS_PATIENCE", 1);
  alarm((unsigned)(seconds ? seconds : USUAL_SECONDS) * (unsigned)factor);
}

bool report_case_end(void) {
  struct {
    int ok, rank;
  } mine = {!failed, this_rank}, first = {1, 0};
  int code = MPI_Allreduce(&mine, &first, 1, MPI_2INT, MPI_MINLOC, reports);
  if (code == MPI_SUCCESS && !first.ok) code = MPI_Bcast(why, sizeof why, MPI_CHAR, first.rank, reports);
  alarm(0);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double took_s = (double)(now.tv_sec - began.tv_sec) + 1e-9 * (double)(now.tv_nsec - began.tv_nsec);
  if (code != MPI_SUCCESS) {
    first.ok = 0;
    snprintf(why, sizeof why, "the ranks cannot agree on the outcome (MPI returned %d)", code);
  }
  if (this_rank == 0) {
    if (!first.ok) printf("failed %s: %s\n", case_name, why);
    else if (why_skipped[0]) printf("skipped %s: %s\n", case_name, why_skipped);
    else printf("ok %s (%.3f s)\n", case_name, took_s);
    fflush(stdout);
  }
  return first.ok;
}
