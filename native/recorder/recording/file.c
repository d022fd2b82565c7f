/* Appends chunks to the file of a rank. */
#include "recorder/recording/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MAGIC 0x43524245u
#define MAX_JOBS 100000

_Static_assert(sizeof(eb_written_entry) == 56 && sizeof(eb_written_phase) == 40, "readers rely on it");

typedef struct {
  uint32_t magic, type;
  uint64_t bytes;
  uint32_t crc, reserved;
} head;

static int file = -1;
static bool is_local;
static char path[4096];
/* Where what was appended ends, what was kept after it, and the file. */
static uint64_t appended, kept, ends_at;

static bool reserve(eb_payload *payload, size_t bytes) {
  if (payload->has_failed) return false;
  if (payload->bytes + bytes <= payload->capacity) return true;
  const size_t capacity = 2 * (payload->bytes + bytes) + sizeof(head);
  char *larger = realloc(payload->at, capacity);
  if (!larger) {
    payload->has_failed = true;
    return false;
  }
  payload->at = larger;
  payload->capacity = capacity;
  return true;
}

/* The head's place is kept free before the first byte, so that a chunk is one write. */
static bool begin(eb_payload *payload) {
  if (payload->bytes > 0) return !payload->has_failed;
  if (!reserve(payload, sizeof(head))) return false;
  memset(payload->at, 0, sizeof(head));
  payload->bytes = sizeof(head);
  return true;
}

void eb_payload_append(eb_payload *payload, const void *data, size_t bytes) {
  if (!begin(payload) || !reserve(payload, bytes)) return;
  memcpy(payload->at + payload->bytes, data, bytes);
  payload->bytes += bytes;
}

void eb_payload_print(eb_payload *payload, const char *format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length >= 0 && (size_t)length < sizeof text) eb_payload_append(payload, text, (size_t)length);
  else payload->has_failed = true;
}

void eb_payload_string(eb_payload *payload, const char *text) {
  eb_payload_append(payload, "\"", 1);
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    /* Other bytes than ASCII's may be no UTF-8: they are written as Latin-1. */
    if (*c < 0x20 || *c >= 0x7f || *c == '"' || *c == '\\') eb_payload_print(payload, "\\u%04x", *c);
    else eb_payload_append(payload, c, 1);
  }
  eb_payload_append(payload, "\"", 1);
}

static uint32_t crc32(const void *data, size_t bytes) {
  static uint32_t table[256];
  if (!table[1]) {
    for (uint32_t value = 0; value < 256; value++) {
      uint32_t crc = value;
      for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
      table[value] = crc;
    }
  }
  uint32_t crc = ~0u;
  for (const unsigned char *at = data; bytes > 0; bytes--, at++) crc = crc >> 8 ^ table[(crc ^ *at) & 0xff];
  return ~crc;
}

/* Not Btrfs or ZFS, which copy on write, nor any that other nodes write to: a write to a mapped page may fail there. */
static bool is_on_local(int of) {
  enum { EXT = 0xef53, XFS = 0x58465342, TMPFS = 0x01021994, OVERLAY = 0x794c7630 };
  struct statfs system;
  if (fstatfs(of, &system) != 0) return false;
  return system.f_type == EXT || system.f_type == XFS || system.f_type == TMPFS || system.f_type == OVERLAY;
}

bool eb_file_create(const char *folder, int rank) {
  /* On another node than the one on which the recording was started the folder may be missing. */
  (void)mkdir(folder, 0777);
  for (int job = 0; job < MAX_JOBS; job++) {
    if (job == 0) snprintf(path, sizeof path, "%s/rank-%d.ebr", folder, rank);
    else snprintf(path, sizeof path, "%s/rank-%d.job-%d.ebr", folder, rank, job);
    file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) break;
  }
  if (file < 0) fprintf(stderr, "earlybird: cannot write %s: %s; this rank is not recorded\n", path, strerror(errno));
  is_local = file >= 0 && is_on_local(file);
  return file >= 0;
}

const char *eb_file_path(void) { return path; }

bool eb_file_is_local(void) { return is_local; }

/* At this place; nothing more after a failure, which is reported. */
static void put(const char *data, size_t bytes, uint64_t at) {
  while (bytes > 0 && file >= 0) {
    const ssize_t written = pwrite(file, data, bytes, (off_t)at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      fprintf(stderr, "earlybird: cannot write %s: %s; the recording of this rank ends here\n", path, strerror(errno));
      close(file);
      file = -1;
      return;
    }
    data += written;
    at += (uint64_t)written;
    bytes -= (size_t)written;
  }
}

/* Frees the payload. Returns where the chunk ends. */
static uint64_t put_chunk(eb_chunk_type type, eb_payload *payload, uint64_t at) {
  if (file >= 0 && !payload->has_failed && payload->bytes > sizeof(head)) {
    const size_t bytes = payload->bytes - sizeof(head);
    const head of_chunk = {MAGIC, type, bytes, crc32(payload->at + sizeof(head), bytes), 0};
    memcpy(payload->at, &of_chunk, sizeof of_chunk);
    put(payload->at, payload->bytes, at);
    at += payload->bytes;
  }
  free(payload->at);
  *payload = (eb_payload){0};
  return at;
}

static void cut(uint64_t at) {
  if (file >= 0 && ends_at > at) (void)!ftruncate(file, (off_t)at);
  ends_at = at;
}

void eb_file_append(eb_chunk_type type, eb_payload *payload) {
  cut(appended);
  ends_at = appended = put_chunk(type, payload, appended);
}

void eb_file_keep_begin(void) { kept = appended; }

void eb_file_keep(eb_chunk_type type, eb_payload *payload) {
  kept = put_chunk(type, payload, kept);
  if (kept > ends_at) ends_at = kept;
}

void eb_file_keep_end(void) { cut(kept); }
