/* Reads, replaces and removes files of the cache. */
#include "partitioned/cache/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A file that is being written begins with a dot and ends so. */
#define TEMPORARY ".tmp"
/* Nobody writes for longer. */
#define ABANDONED_AFTER_S 3600

static bool joined(char *path, const char *folder, const char *separator, const char *name) {
  return snprintf(path, EB_STORE_MAX_PATH, "%s%s%s", folder, separator, name) < EB_STORE_MAX_PATH;
}

bool eb_store_folder(const char *value, char *folder) {
  if (value && strcmp(value, "off") == 0) return false;
  if (value && value[0] == '/') return joined(folder, value, "", "");
  if (value && *value) {
    /* The program may change its folder before MPI_Finalize. */
    char current[EB_STORE_MAX_PATH];
    return getcwd(current, sizeof current) && joined(folder, current, "/", value);
  }
  const char *const cache = getenv("XDG_CACHE_HOME"), *const home = getenv("HOME");
  if (cache && cache[0] == '/') return joined(folder, cache, "/", "earlybird");
  return home && home[0] == '/' && joined(folder, home, "/", ".cache/earlybird");
}

char *eb_store_read(const char *folder, const char *name, size_t max_bytes, size_t *length) {
  char path[EB_STORE_MAX_PATH];
  struct stat status;
  if (!joined(path, folder, "/", name)) return NULL;
  /* Not blocked by a pipe. */
  const int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return NULL;
  char *text = NULL;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && (size_t)status.st_size <= max_bytes)
    text = malloc((size_t)status.st_size + 1);
  *length = 0;
  for (ssize_t got = 1; text && got > 0 && *length < (size_t)status.st_size; *length += got > 0 ? (size_t)got : 0) {
    got = read(file, text + *length, (size_t)status.st_size - *length);
    if (got < 0) {
      free(text);
      text = NULL;
    }
  }
  close(file);
  return text;
}

bool eb_store_is_writable(const char *folder) { return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0; }

/* With the folders above it. */
static bool make_folder(const char *folder) {
  char path[EB_STORE_MAX_PATH];
  struct stat status;
  if (stat(folder, &status) == 0) return S_ISDIR(status.st_mode) || (errno = ENOTDIR, false);
  if (!joined(path, folder, "", "")) return errno = ENAMETOOLONG, false;
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(path, 0700) != 0 && errno != EEXIST && errno != EACCES && errno != EROFS) return false;
    *slash = '/';
  }
  return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool write_all(int file, const char *text, size_t length) {
  while (length > 0) {
    const ssize_t written = write(file, text, length);
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text += written, length -= (size_t)written;
  }
  return true;
}

/* ---- Which files are ours ---- */

enum { HASH_DIGITS = 16, HASHES_LENGTH = 2 * (1 + HASH_DIGITS) };

/* Moves past a dash and 16 digits. */
static bool skip_hash(const char **at) {
  if (**at != '-' || strspn(*at + 1, "0123456789abcdef") < HASH_DIGITS) return false;
  *at += 1 + HASH_DIGITS;
  return true;
}

/* Moves past the name of a file, as eb_identity_of makes it: words, two hashes and the suffix, the first of which ends it. */
static bool skip_name(const char **at) {
  const char *const end = strstr(*at, EB_STORE_SUFFIX);
  if (!end || end - *at < HASHES_LENGTH) return false;
  const char *hashes = end - HASHES_LENGTH;
  if (*at + strspn(*at, "abcdefghijklmnopqrstuvwxyz0123456789.-") < hashes) return false;
  *at = end + strlen(EB_STORE_SUFFIX);
  if (!skip_hash(&hashes)) return false;
  return skip_hash(&hashes); /* there are two */
}

/* Moves past a dash and a decimal number. */
static bool skip_number(const char **at) {
  const size_t length = **at == '-' ? strspn(*at + 1, "0123456789") : 0;
  *at += 1 + length;
  return length > 0;
}

static bool is_name(const char *name) { return skip_name(&name) && *name == '\0'; }

static bool is_temporary(const char *name) {
  return *name++ == '.' && skip_name(&name) && skip_number(&name) && skip_number(&name) && strcmp(name, TEMPORARY) == 0;
}

/* Does an ordinary file begin with the mark, or, where it was interrupted, with a part of it? */
static bool has_mark(const char *path, bool may_be_partial) {
  const size_t size = strlen(EB_STORE_MARK);
  char begin[sizeof EB_STORE_MARK];
  struct stat status;
  const int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  const bool is_file = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const ssize_t length = is_file ? read(file, begin, size) : -1;
  close(file);
  return length >= 0 && (may_be_partial || (size_t)length == size) && memcmp(begin, EB_STORE_MARK, (size_t)length) == 0;
}

/* Removes what interrupted processes left, and the oldest files of which there are more than max_files, but not the one just
 * written. Files of other programs stay. */
static void tidy(const char *folder, const char *written, int max_files) {
  char path[EB_STORE_MAX_PATH], oldest[EB_STORE_MAX_PATH] = "";
  const time_t now = time(NULL);
  int num = 0, removed = 0;
  do {
    DIR *const entries = opendir(folder);
    struct stat status;
    time_t oldest_time = 0;
    num = 0;
    oldest[0] = '\0';
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
      const char *const name = entry->d_name;
      const bool is_left = is_temporary(name);
      if ((!is_left && !is_name(name)) || !joined(path, folder, "/", name) || lstat(path, &status) != 0 || !has_mark(path, is_left))
        continue;
      if (is_left) {
        if (now - status.st_mtime > ABANDONED_AFTER_S) (void)unlink(path);
        continue;
      }
      num++;
      if (strcmp(name, written) == 0 || (oldest[0] && status.st_mtime >= oldest_time)) continue;
      oldest_time = status.st_mtime;
      strcpy(oldest, path);
    }
    if (entries) closedir(entries);
  } while (num > max_files && oldest[0] && unlink(oldest) == 0 && ++removed < 8);
}

/* ---- Writing and removing ---- */

const char *eb_store_write(const char *folder, const char *name, const char *text, size_t length, int max_files) {
  char path[EB_STORE_MAX_PATH], temporary[EB_STORE_MAX_PATH], begun[300];
  struct timespec now;
  struct rlimit limit;
  struct stat before;
  if (!make_folder(folder)) return strerror(errno);
  /* A write beyond this limit would end the program by a signal. */
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < length) return strerror(EFBIG);
  clock_gettime(CLOCK_REALTIME, &now);
  /* Processes of several nodes may have one number, and hardly one nanosecond. */
  snprintf(begun, sizeof begun, "/.%s-%ld-%ld" TEMPORARY, name, (long)getpid(), (long)now.tv_nsec);
  if (!joined(path, folder, "/", name) || !joined(temporary, folder, begun, "")) return strerror(ENAMETOOLONG);
  const bool is_new = lstat(path, &before) != 0;
  const int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return strerror(errno);
  const bool is_written = write_all(file, text, length);
  const int failure = errno;
  /* A full disk may show only now. */
  if (close(file) == 0 && is_written && rename(temporary, path) == 0) {
    if (is_new) tidy(folder, name, max_files);
    return NULL;
  }
  const int reason = is_written ? errno : failure;
  (void)unlink(temporary);
  return strerror(reason);
}

bool eb_store_remove(const char *folder, const char *prefix, void (*removed)(const char *path)) {
  char path[EB_STORE_MAX_PATH];
  int failure = 0;
  DIR *const entries = opendir(folder);
  if (!entries) return errno == ENOENT;
  for (const struct dirent *entry; (entry = readdir(entries));) {
    const bool is_left = is_temporary(entry->d_name);
    if ((!is_left && !is_name(entry->d_name)) || strncmp(entry->d_name + is_left, prefix, strlen(prefix)) != 0 ||
        !joined(path, folder, "/", entry->d_name))
      continue;
    if (unlink(path) != 0) failure = errno != ENOENT ? errno : failure;
    else if (!is_left) removed(path);
  }
  closedir(entries);
  errno = failure;
  return failure == 0;
}
