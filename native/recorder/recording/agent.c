/* Starts the agent without a trace in the program: no child and no open file stay. The program gets one SIGCHLD, which a handler
 * that was installed before MPI_Init sees. */
#include "recorder/recording/agent.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 4096, ABOVE_LOCK = 10 };
_Static_assert(ABOVE_LOCK > EB_AGENT_LOCK, "adddup2 of a descriptor to itself closes it in the agent with glibc before 2.29");

/* Beside the folder of this library. */
static int find_program(char program[LENGTH]) {
  Dl_info found;
  if (dladdr((void *)eb_agent_start, &found) == 0 || !found.dli_fname) return 0;
  const char *const name = strrchr(found.dli_fname, '/');
  if (!name) return 0;
  const int length = snprintf(program, LENGTH, "%.*s/../libexec/earlybird/page_agent", (int)(name - found.dli_fname),
                              found.dli_fname);
  return length < LENGTH && access(program, X_OK) == 0;
}

/* Not fork: pages that the network reads or writes are not copied, nor shared with another process. The program started here
 * starts the agent as its own child and ends at once. */
static void spawn(char *const arguments[], int folder) {
  char *none[] = {NULL}; /* no preloaded library */
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t empty, all;
  pid_t child;
  int status;
  sigemptyset(&empty);
  sigfillset(&all);
  if (posix_spawn_file_actions_init(&files) != 0) return;
  if (posix_spawnattr_init(&attributes) == 0) {
    (void)posix_spawnattr_setsigmask(&attributes, &empty);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (posix_spawn_file_actions_adddup2(&files, folder, EB_AGENT_LOCK) == 0 &&
        posix_spawn(&child, arguments[0], &files, &attributes, arguments, none) == 0)
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    (void)posix_spawnattr_destroy(&attributes);
  }
  (void)posix_spawn_file_actions_destroy(&files);
}

void eb_agent_start(const char *folder, const char *path, uint64_t num_nodes) {
  char program[LENGTH], nodes[32];
  const int opened = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return;
  const int lock = fcntl(opened, F_DUPFD_CLOEXEC, ABOVE_LOCK);
  close(opened);
  if (lock < 0) return;
  if (flock(lock, LOCK_EX | LOCK_NB) == 0 && find_program(program)) {
    snprintf(nodes, sizeof nodes, "%llu", (unsigned long long)num_nodes);
    char *const arguments[] = {program, (char *)folder, (char *)path, nodes, NULL};
    spawn(arguments, lock);
  }
  close(lock);
}
