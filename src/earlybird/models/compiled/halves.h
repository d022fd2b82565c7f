/* Work that is done in two halves, one of them by a second thread. */
#ifndef EARLYBIRD_MODELS_HALVES_H
#define EARLYBIRD_MODELS_HALVES_H

/* half 0 or 1; what a half writes, the other does not touch. */
typedef void eb_half_of_work(void *of, int half);
typedef struct eb_halves eb_halves;

/* NULL if there is no second processor or thread: then eb_halves_do does both halves itself. */
eb_halves *eb_halves_create(void);
void eb_halves_do(eb_halves *halves, eb_half_of_work *work, void *of);
void eb_halves_destroy(eb_halves *halves);

#endif
