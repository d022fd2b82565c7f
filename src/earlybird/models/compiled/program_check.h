/* Whether the arrays of a program fit each other. */
#ifndef EARLYBIRD_MODELS_PROGRAM_CHECK_H
#define EARLYBIRD_MODELS_PROGRAM_CHECK_H

#include "models.h"

/* 0, -1 if memory is short, or EB_BAD_PROGRAM with a reason and an index. */
int eb_program_check(const eb_program *program, const eb_network *network, int64_t *place, const char **reason);

#endif
