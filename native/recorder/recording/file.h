/* The file of a rank: a header, and then chunks that are whole at any moment.
 *
 * Binary and not NDJSON: a chunk of 10,000 entries is one copy into memory that write(2) takes, without a number being
 * printed inside of the program's time, and one numpy.frombuffer for the reader. What people may want to read, and what
 * changes from version to version, is JSON text inside the chunks: the names of calls, the fields of an entry, communicators.
 *
 * A chunk, in the byte order of the machine, of which the magic number is evidence:
 *   uint32 magic 0x43524245 ("EBRC"), uint32 type, uint64 payload bytes, uint32 CRC-32 of the payload, uint32 0, payload.
 * Types: 1 JSON object, whose "kind" is header, modules, communicator, place, phase, epochs, arrivals or end; 2 entries: uint64
 * nanoseconds since MPI_Init, then entries of 56 bytes (eb_written_entry); 3 phases: of 40 bytes each (eb_written_phase). These,
 * epochs and arrivals hold totals since MPI_Init: of two with the same key, which includes the thread, the later one counts.
 * 4 like 2, of epochs that have not ended: they add to the totals, if nothing follows. Unknown types are passed over. What follows
 * the first damaged chunk does not count.
 */
#ifndef EB_RECORDED_FILE_H
#define EB_RECORDED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint16_t call; /* into the header's "calls" */
  uint8_t role, size_class;
  uint32_t communicator;
  int32_t peer;
  uint32_t thread;
  uint32_t phase, reserved;
  uint64_t calls, messages, bytes, time_ns;
} eb_written_entry;

/* first_ns, last_ns: the beginning of the first epoch and the end of the last one, since MPI_Init. */
typedef struct {
  uint32_t phase, thread;
  uint64_t epochs, time_ns, first_ns, last_ns;
} eb_written_phase;

typedef enum { EB_CHUNK_JSON = 1, EB_CHUNK_ENTRIES = 2, EB_CHUNK_PHASES = 3, EB_CHUNK_PENDING = 4 } eb_chunk_type;

/* A payload that grows. After memory was short, `has_failed`, and it is not written. */
typedef struct {
  char *at;
  size_t bytes, capacity;
  bool has_failed;
  bool is_begun; /* for who prints a list */
} eb_payload;

void eb_payload_append(eb_payload *payload, const void *data, size_t bytes);
void eb_payload_print(eb_payload *payload, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string with its quotes. */
void eb_payload_string(eb_payload *payload, const char *text);

/* Creates the file of this rank in a folder, which is created too if its parent exists. Of a second job in the same folder,
 * or a spawned one, the name has a number. False: a message says why. */
bool eb_file_create(const char *folder, int rank);

/* Of the created file. */
const char *eb_file_path(void);

/* Is it on a file system of this node that gives a page of a file its blocks once and for all? Then writing is cheap for other
 * nodes, and a mapped page has memory behind it whatever happens. */
bool eb_file_is_local(void);

/* Appends a chunk with one write, and frees the payload. After a failure, which is reported once, nothing more is written. */
void eb_file_append(eb_chunk_type type, eb_payload *payload);

/* The same for chunks of which the next appended one takes the place: what they say is said again then. Those that are kept
 * between the two calls take the place of those kept before. */
void eb_file_keep_begin(void);
void eb_file_keep(eb_chunk_type type, eb_payload *payload);
void eb_file_keep_end(void);

#endif
