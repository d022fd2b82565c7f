/* Calls process_vm_readv and process_vm_writev until all bytes are copied. */
#include "partitioned/node/peer_memory.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/prctl.h>
#include <sys/uio.h>
#endif

/* That another process can read, and where it shows that it can write. */
static struct {
  uint64_t mark, written;
} own;

/* prctl or a change of the user may make a process one that others cannot reach. */
static int openness(void) {
#if defined(__linux__)
  return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
#else
  return 0;
#endif
}

static int first_openness;

eb_peer eb_peer_self(void) {
  struct timespec now;
  if (own.mark == 0) first_openness = openness();
  clock_gettime(CLOCK_REALTIME, &now);
  if (own.mark == 0) own.mark = ((uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec) ^ (uint64_t)getpid() << 40;
  return (eb_peer){getpid(), (uint64_t)(uintptr_t)&own, own.mark};
}

#if defined(__linux__)
enum { FROM_PEER, TO_PEER };

/* A page that cannot be copied ends the call before it, and the next call fails. */
static int copy(int64_t process, uint64_t theirs, char *ours, size_t num_bytes, int direction) {
  while (num_bytes > 0) {
    const struct iovec local = {ours, num_bytes}, remote = {(void *)(uintptr_t)theirs, num_bytes};
    const ssize_t copied = direction == FROM_PEER ? process_vm_readv((pid_t)process, &local, 1, &remote, 1, 0)
                                                  : process_vm_writev((pid_t)process, &local, 1, &remote, 1, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied <= 0) return copied < 0 ? errno : EFAULT;
    ours += copied;
    theirs += (uint64_t)copied;
    num_bytes -= (size_t)copied;
  }
  return 0;
}
#else
enum { FROM_PEER, TO_PEER };

static int copy(int64_t process, uint64_t theirs, char *ours, size_t num_bytes, int direction) {
  (void)process, (void)theirs, (void)ours, (void)num_bytes, (void)direction;
  return ENOSYS;
}
#endif

bool eb_peer_self_is_open(void) { return openness() == first_openness; }

/* 0: it is the process. */
static int find(const eb_peer *peer) {
  uint64_t mark = 0;
  const int error = copy(peer->process, peer->mark_address, (char *)&mark, sizeof mark, FROM_PEER);
  return error ? error : mark == peer->mark ? 0 : ESRCH;
}

int eb_peer_try(const eb_peer *peer) {
  uint64_t mark = peer->mark;
  const int error = find(peer);
  return error ? error : copy(peer->process, peer->mark_address + sizeof mark, (char *)&mark, sizeof mark, TO_PEER);
}

bool eb_peer_has_ended(const eb_peer *peer) {
  const int error = find(peer);
  return error == ESRCH || error == EFAULT; /* its number may be another process's by now */
}

/* What was read must not be another process's that has its number by now: this one was the peer after all was read. */
int eb_peer_read(const eb_peer *peer, uint64_t from, void *to, size_t num_bytes) {
  const int error = copy(peer->process, from, to, num_bytes, FROM_PEER);
  return error ? error : find(peer);
}

/* What is written must not be another process's that has its number by now. */
int eb_peer_write(const eb_peer *peer, uint64_t to, const void *from, size_t num_bytes) {
  const int error = find(peer);
  return error ? error : copy(peer->process, to, (char *)(uintptr_t)from, num_bytes, TO_PEER);
}

bool eb_peer_memory_is_plain(const void *begin, size_t num_bytes) {
  const char *const last = (const char *)begin + num_bytes - 1;
  char byte;
  return num_bytes == 0 || (copy(getpid(), (uint64_t)(uintptr_t)begin, &byte, 1, FROM_PEER) == 0 &&
                            copy(getpid(), (uint64_t)(uintptr_t)last, &byte, 1, FROM_PEER) == 0);
}
