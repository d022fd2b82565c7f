/* Collects the answers to each sender in messages, and takes apart the messages that arrive. */
#include "partitioned/matching/answers.h"

#include <stdbool.h>
#include <stdlib.h>

#include "partitioned/domain/domain.h"
#include "partitioned/matching/control.h"
#include "partitioned/process/world.h"

enum { MAX_ANSWERS = 32 };

typedef struct {
  int64_t first_id;
  int64_t kind;
} answer;

/* Answers not yet sent to one sender. */
typedef struct {
  int num;
  int64_t num_ids; /* of all of them */
  answer answers[MAX_ANSWERS];
} unsent_answers;

static unsent_answers **unsent; /* [domain size], or NULL where there were none */

static int send_answers(int sender, unsent_answers *of_sender) {
  const size_t num_bytes = (size_t)of_sender->num * sizeof of_sender->answers[0];
  const int rc = eb_control_send(sender, EB_CONTROL_ANSWER, of_sender->answers, num_bytes);
  if (rc != MPI_SUCCESS) return rc;
  of_sender->num = 0;
  of_sender->num_ids = 0;
  return rc;
}

/* One message per release could be too many for a sender that does not receive them; but at most a quarter of the ids
 * should be out of use. */
static bool is_to_be_sent(const unsent_answers *of_sender, eb_answer_kind kind) {
  return kind != EB_RELEASED || of_sender->num == MAX_ANSWERS ||
         of_sender->num_ids >= eb_tags_num_ids(&eb_domain.tags) / 4 / eb_domain.size;
}

int eb_answers_send(int sender, int64_t first_id, eb_answer_kind kind, int64_t num_ids) {
  const answer made = {first_id, kind};
  int rc = MPI_SUCCESS;
  eb_lock();
  if (!unsent) unsent = calloc((size_t)eb_domain.size, sizeof *unsent);
  if (unsent && !unsent[sender]) unsent[sender] = calloc(1, sizeof *unsent[sender]);
  if (unsent && unsent[sender]) {
    unsent_answers *const of_sender = unsent[sender];
    of_sender->answers[of_sender->num++] = made;
    of_sender->num_ids += num_ids;
    if (is_to_be_sent(of_sender, kind)) rc = send_answers(sender, of_sender);
    /* A release can go with a later answer. */
    if (rc != MPI_SUCCESS && kind == EB_RELEASED && of_sender->num < MAX_ANSWERS) rc = MPI_SUCCESS;
    if (rc != MPI_SUCCESS) {
      of_sender->num--; /* the caller handles this one; the others stay queued */
      of_sender->num_ids -= num_ids;
    }
  } else {
    rc = eb_control_send(sender, EB_CONTROL_ANSWER, &made, sizeof made);
  }
  eb_unlock();
  return rc;
}

void eb_answers_collect(eb_answer_handler *taken) {
  answer received[MAX_ANSWERS];
  int num_bytes = sizeof received;
  while (eb_control_take(EB_CONTROL_ANSWER, received, &num_bytes)) {
    for (int a = 0; a < num_bytes / (int)sizeof received[0]; a++) taken(received[a].first_id, (eb_answer_kind)received[a].kind);
    num_bytes = sizeof received;
  }
}

void eb_answers_end(void) {
  for (int sender = 0; unsent && sender < eb_domain.size; sender++) free(unsent[sender]);
  free(unsent);
  unsent = NULL;
}
