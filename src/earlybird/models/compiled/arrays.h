/* Memory of large arrays, which the first access to each page of 4 KiB would make slow. */
#ifndef EARLYBIRD_MODELS_ARRAYS_H
#define EARLYBIRD_MODELS_ARRAYS_H

#include <stddef.h>

/* As malloc and calloc; free releases them. Linux is asked for huge pages: with small ones a virtual machine took 1 s for each
 * GB, most of it for entering the kernel once a page. */
void *eb_array(size_t num_bytes);
void *eb_array_of_zeros(size_t num, size_t item_bytes);

#endif
