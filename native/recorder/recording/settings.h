/* Under what conditions a rank runs: variables of the environment, cores, load. */
#ifndef EB_RECORDED_SETTINGS_H
#define EB_RECORDED_SETTINGS_H

#include <stdint.h>

#include "recorder/recording/file.h"

/* The members "settings", "binding" and "load" of a JSON object, each with a comma before it. */
void eb_settings_print(eb_payload *payload);

/* How many ranks the node of this one has, as its launcher says; `num_ranks`, of the job, where none does. */
uint64_t eb_settings_num_local(uint64_t num_ranks);

#endif
