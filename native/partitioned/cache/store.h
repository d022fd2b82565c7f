/* The folder of the cache: files are replaced as a whole, and nothing that goes wrong there matters to the program. */
#ifndef EB_STORE_H
#define EB_STORE_H

#include <stdbool.h>
#include <stddef.h>

enum { EB_STORE_MAX_PATH = 1200 };
/* How every file is named, after the name of an MPI and two hashes of 16 digits, and how it begins, in every version. */
#define EB_STORE_SUFFIX ".cache"
#define EB_STORE_MARK "earlybird-cache "

/* The absolute path of the folder for a value of EARLYBIRD_CACHE, of which NULL and empty stand for the user's cache; false:
 * nothing is kept. */
bool eb_store_folder(const char *value, char *folder);

/* The contents, which the caller frees; NULL: there is no such file, or it is no ordinary file of at most max_bytes. */
char *eb_store_read(const char *folder, const char *name, size_t max_bytes, size_t *length);

/* May files of the folder, which exists, be replaced? */
bool eb_store_is_writable(const char *folder);

/* Writes a file that only the user reads, creating the folder if needed; at most max_files stay, the oldest go first. Files of
 * other programs are neither counted nor removed. NULL, or why it was not written. */
const char *eb_store_write(const char *folder, const char *name, const char *text, size_t length, int max_files);

/* Removes the files whose names begin with the prefix, and what interrupted processes left of them; calls `removed` for each of
 * the former. False if one stays; errno says why. */
bool eb_store_remove(const char *folder, const char *prefix, void (*removed)(const char *path));

#endif
