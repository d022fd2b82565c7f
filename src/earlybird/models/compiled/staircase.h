/* The times of one group by the staircase model. */
#ifndef EARLYBIRD_MODELS_STAIRCASE_H
#define EARLYBIRD_MODELS_STAIRCASE_H

#include <stddef.h>
#include <stdint.h>

/* The memory that eb_group_times needs in addition to the results. */
size_t eb_group_work_bytes(int64_t num, int64_t num_classes);

/* As eb_staircase, of one group. */
void eb_group_times(int64_t num, int64_t num_classes, const int64_t *volume_bytes, const double *bandwidth_bytes_per_s, void *work,
                    double *finished_s);

#endif
