/* A file in memory that another process opens through the process that has created it. Fails unless that process maps the same memory, and
 * opens nothing else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "partitioned/node/shared_file.h"

enum { NUM_BYTES = 1 << 20 };

static void expect(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void open_in_child(const eb_shared_file *file) {
  eb_shared_file other = *file;
  const int descriptor = eb_shared_file_open(file);
  expect(descriptor >= 0, "the file of another process cannot be opened");
  char *const memory = eb_shared_file_map(descriptor, NUM_BYTES);
  expect(memory != NULL, "it cannot be mapped");
  eb_shared_file_close(descriptor);
  memory[NUM_BYTES - 1] = 7;
  other.inode++;
  expect(eb_shared_file_open(&other) < 0, "another file is taken for it");
  other = *file;
  other.descriptor = STDERR_FILENO;
  expect(eb_shared_file_open(&other) < 0, "a file of another kind is taken for it");
  other = *file;
  other.process = getpid();
  expect(eb_shared_file_open(&other) < 0, "a file of another process is taken for it");
  exit(0);
}

int main(void) {
  eb_shared_file file;
  struct stat status;
  int result;
  const int descriptor = eb_shared_file_create(NUM_BYTES, &file);
  expect(descriptor >= 0, "no file can be created");
  expect(fstat(descriptor, &status) == 0 && (status.st_mode & 0777) == 0600, "others may open the file");
  expect(status.st_blocks == 0, "the file takes memory before it is written");
  expect(ftruncate(descriptor, 0) != 0, "the file can be made shorter");
  const pid_t child = fork();
  if (child == 0) {
    close(descriptor);
    open_in_child(&file);
  }
  expect(waitpid(child, &result, 0) == child && result == 0, "the other process has failed");
  const char *const memory = eb_shared_file_map(descriptor, NUM_BYTES);
  expect(memory != NULL && memory[NUM_BYTES - 1] == 7, "what the other process has written is not there");
  return 0;
}
