/* Creates, opens and maps an anonymous file in memory (Linux). */
#include "partitioned/node/shared_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(__linux__)
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if defined(__linux__) && defined(SYS_memfd_create) && defined(F_ADD_SEALS)
#define NAME "earlybird"
#define LINK "/memfd:" NAME " (deleted)" /* what the system calls it */

/* Of <linux/memfd.h>, which is as old as the C library. */
enum { CLOSE_ON_EXEC = 1, ALLOW_SEALING = 2, NO_EXECUTION = 8 };

/* A page that the system cannot provide when it is written ends the process. Where memory is only promised as far as there is any
 * (vm.overcommit_memory=2), that may be any page. */
static bool is_memory_promised(void) {
  char mode = '2';
  const int file = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t length = read(file, &mode, 1);
  (void)close(file);
  return length == 1 && mode != '2';
}

/* A file that becomes longer than its user allows ends the process, too. */
static bool is_length_allowed(int64_t num_bytes) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || (rlim_t)num_bytes <= limit.rlim_cur);
}

static int create(void) {
  const int file = (int)syscall(SYS_memfd_create, NAME, CLOSE_ON_EXEC | ALLOW_SEALING | NO_EXECUTION);
  if (file >= 0 || errno != EINVAL) return file;
  return (int)syscall(SYS_memfd_create, NAME, CLOSE_ON_EXEC | ALLOW_SEALING); /* Linux before 6.3 */
}

/* The size stays: access behind the end of a file that was made shorter would end the process. */
static bool prepare(int descriptor, int64_t num_bytes, struct stat *status) {
  return fchmod(descriptor, S_IRUSR | S_IWUSR) == 0 && ftruncate(descriptor, num_bytes) == 0 &&
         fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 && fstat(descriptor, status) == 0;
}

int eb_shared_file_create(int64_t num_bytes, eb_shared_file *made) {
  struct stat status;
  errno = is_length_allowed(num_bytes) ? ENOMEM : EFBIG;
  const int descriptor = errno == ENOMEM && is_memory_promised() ? create() : -1;
  if (descriptor < 0) return -1;
  if (!prepare(descriptor, num_bytes, &status)) {
    const int error = errno;
    (void)close(descriptor);
    errno = error;
    return -1;
  }
  *made = (eb_shared_file){.process = getpid(),
                           .num_bytes = num_bytes,
                           .device = (uint64_t)status.st_dev,
                           .inode = (uint64_t)status.st_ino,
                           .descriptor = descriptor};
  return descriptor;
}

/* Is it that file, and no other one of a process that has the same number here? Asked before it is opened, because opening a device
 * may have effects. */
static bool is_named(const char *path) {
  char target[sizeof LINK + 1];
  const ssize_t length = readlink(path, target, sizeof target);
  return length == sizeof LINK - 1 && memcmp(target, LINK, sizeof LINK - 1) == 0;
}

int eb_shared_file_open(const eb_shared_file *file) {
  char path[64];
  struct stat status;
  snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)file->process, file->descriptor);
  errno = ENOENT;
  if (file->num_bytes == 0 || !is_named(path)) return -1;
  const int descriptor = open(path, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return -1;
  if (fstat(descriptor, &status) == 0 && (uint64_t)status.st_dev == file->device && (uint64_t)status.st_ino == file->inode &&
      status.st_size == file->num_bytes)
    return descriptor;
  (void)close(descriptor);
  errno = ENOENT;
  return -1;
}

/* A child process has no use for it. */
void *eb_shared_file_map(int descriptor, int64_t num_bytes) {
  void *const memory = mmap(NULL, (size_t)num_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return NULL;
  (void)madvise(memory, (size_t)num_bytes, MADV_DONTFORK);
  (void)madvise(memory, (size_t)num_bytes, MADV_DONTDUMP);
  return memory;
}

void eb_shared_file_close(int descriptor) {
  if (descriptor >= 0) (void)close(descriptor);
}

void eb_shared_file_unmap(void *memory, int64_t num_bytes) { (void)munmap(memory, (size_t)num_bytes); }
#else
int eb_shared_file_create(int64_t num_bytes, eb_shared_file *made) {
  (void)num_bytes, (void)made;
  errno = ENOSYS;
  return -1;
}

int eb_shared_file_open(const eb_shared_file *file) {
  (void)file;
  errno = ENOSYS;
  return -1;
}

void *eb_shared_file_map(int descriptor, int64_t num_bytes) {
  (void)descriptor, (void)num_bytes;
  errno = ENOSYS;
  return NULL;
}

void eb_shared_file_close(int descriptor) { (void)descriptor; }

void eb_shared_file_unmap(void *memory, int64_t num_bytes) { (void)memory, (void)num_bytes; }
#endif
