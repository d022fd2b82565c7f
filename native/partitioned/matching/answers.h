/* A receiver's answers to a sender's setup. */
#ifndef EB_ANSWERS_H
#define EB_ANSWERS_H

#include <stdint.h>

/* The setup was accepted, or refused because the totals differ, or the receiver was freed. */
typedef enum { EB_ACCEPTED, EB_REFUSED, EB_RELEASED } eb_answer_kind;

/* Answers the setup of the channel with this id. Several releases travel in one message, or with an answer of another kind;
 * num_ids is the number of ids that a release returns. Returns an MPI code. */
int eb_answers_send(int sender, int64_t first_id, eb_answer_kind kind, int64_t num_ids);

/* Passes on the answers that have arrived. Under eb_lock. */
typedef void eb_answer_handler(int64_t first_id, eb_answer_kind kind);
void eb_answers_collect(eb_answer_handler *taken);

void eb_answers_end(void);

#endif
