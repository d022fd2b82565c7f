/* How the programs of the suite report case by case; rank 0 prints, the driver in Python reads. */
#ifndef EARLYBIRD_TESTS_REPORT_H
#define EARLYBIRD_TESTS_REPORT_H

#include <mpi.h>
#include <stdbool.h>

/* Installs what prints the name of a case that crashes or hangs. `world` is for the reports alone. */
void report_begin(MPI_Comm world);
void report_case_begin(const char *name, int seconds);
/* Collective: prints `ok NAME`, `skipped NAME: why` or `failed NAME: why`; true unless it failed. */
bool report_case_end(void);

#endif
