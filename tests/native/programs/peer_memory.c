/* Memory of another process: read and written through all of it; errors where a page is missing, the process is another one, or has ended;
 * and a direct transfer whose copies fail, or whose peer ends in the middle of one. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "partitioned/node/direct_copy.h"
#include "partitioned/node/peer_memory.h"

enum { NUM_BYTES = 1 << 20, PAGE = 4096 };

static char *theirs; /* of the child, at the same address here: this process has its own copy */
static eb_direct_memory *shared;

static void expect(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static pid_t start_child(eb_peer *peer) {
  int ends[2];
  expect(pipe(ends) == 0, "no pipe");
  const pid_t child = fork();
  if (child == 0) {
    memset(theirs, 7, NUM_BYTES);
    const eb_peer self = eb_peer_self();
    expect(write(ends[1], &self, sizeof self) == sizeof self, "nothing written");
    for (;;) pause();
  }
  expect(read(ends[0], peer, sizeof *peer) == sizeof *peer, "nothing read");
  close(ends[0]);
  close(ends[1]);
  return child;
}

static void end_child(pid_t child) {
  kill(child, SIGKILL);
  expect(waitpid(child, NULL, 0) == child, "no child");
}

static void copy_all(const eb_peer *peer) {
  static char ours[NUM_BYTES];
  const uint64_t at = (uint64_t)(uintptr_t)theirs;
  expect(eb_peer_try(peer) == 0, "the peer cannot be reached");
  expect(eb_peer_read(peer, at, ours, NUM_BYTES) == 0 && ours[0] == 7 && ours[NUM_BYTES - 1] == 7, "not read");
  memset(ours, 9, NUM_BYTES);
  expect(eb_peer_write(peer, at, ours, NUM_BYTES) == 0, "not written");
  memset(ours, 0, NUM_BYTES);
  expect(eb_peer_read(peer, at, ours, NUM_BYTES) == 0 && ours[0] == 9 && ours[NUM_BYTES - 1] == 9, "not written there");
  expect(theirs[0] == 0, "written here");
  /* The page behind the end is not there: part of it is copied, and the rest is an error. */
  expect(eb_peer_read(peer, at + PAGE, ours, NUM_BYTES) == EFAULT, "what is not there is read");
  eb_peer other = *peer;
  other.mark++;
  expect(eb_peer_try(&other) == ESRCH && eb_peer_write(&other, at, ours, 1) == ESRCH && eb_peer_read(&other, at, ours, 1) == ESRCH,
         "another process is taken for it");
  expect(!eb_peer_has_ended(peer) && eb_peer_has_ended(&other), "the wrong one has ended");
}

static void check_plain(void) {
  char *const page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  expect(eb_peer_memory_is_plain(theirs, NUM_BYTES), "memory is not plain");
  expect(!eb_peer_memory_is_plain(page, PAGE) && !eb_peer_memory_is_plain(theirs, NUM_BYTES + 1),
         "memory is plain that is not there");
}

/* Sends two chunks to the child; the address is what it says, or not there. */
static eb_direct_state send(const eb_peer *peer, char *to, int most) {
  static char ours[NUM_BYTES];
  eb_direct sender, receiver;
  eb_direct_format(shared);
  eb_direct_begin(&sender, shared, true);
  eb_direct_begin(&receiver, shared, false);
  eb_direct_open(&receiver, 1, to);
  eb_direct_make_ready(&sender, 1, 0, ours);
  const eb_direct_part part = {1, 0, ours, 0, NUM_BYTES};
  (void)eb_direct_copy(&sender, peer, &part, most);
  return eb_direct_state_of(&sender, 1, 0, eb_direct_num_chunks(NUM_BYTES));
}

int main(void) {
  eb_peer peer;
  char *const memory = mmap(NULL, NUM_BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  expect(memory != MAP_FAILED && munmap(memory + NUM_BYTES, PAGE) == 0, "no memory");
  theirs = memory;
  shared = aligned_alloc(64, sizeof *shared);
  const pid_t child = start_child(&peer);
  copy_all(&peer);
  check_plain();
  const int all = eb_direct_num_chunks(NUM_BYTES);
  expect(send(&peer, theirs, all) == EB_DIRECT_DONE, "not sent");
  expect(send(&peer, theirs, all - 1) == EB_DIRECT_OPEN, "sent before the last chunk");
  expect(send(&peer, theirs + PAGE, all) == EB_DIRECT_FAILED, "sent to what is not there");
  end_child(child);
  expect(eb_peer_has_ended(&peer), "the peer has not ended");
  expect(send(&peer, theirs, all) == EB_DIRECT_FAILED, "sent to a process that has ended");
  return 0;
}
