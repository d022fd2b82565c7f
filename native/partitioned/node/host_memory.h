/* Is a buffer memory that the processor can read? A device's may not be. */
#ifndef EB_HOST_MEMORY_H
#define EB_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Of the first and the last byte; takes some microseconds. False where it cannot be determined. */
bool eb_memory_is_readable(const void *begin, size_t num_bytes);

#endif
