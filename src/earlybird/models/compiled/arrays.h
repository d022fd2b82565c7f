/* Memory of large arrays that are read many times. */
#ifndef EARLYBIRD_MODELS_ARRAYS_H
#define EARLYBIRD_MODELS_ARRAYS_H

#include <stddef.h>

/* As malloc and calloc; free releases them. Linux is asked for huge pages: what is read again and again, a bit here and a bit
 * there, waits less for the addresses of pages. What is read once would rather wait for the memory of pages that it uses in
 * part: the arrays of 27 million messages took longer. */
void *eb_array(size_t num_bytes);
void *eb_array_of_zeros(size_t num, size_t item_bytes);

#endif
