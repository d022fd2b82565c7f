/* Control messages on the domain: setups of senders, and answers of receivers. */
#ifndef EB_CONTROL_H
#define EB_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

/* `what` is EB_CONTROL_SETUP or EB_CONTROL_ANSWER. Sends a copy; returns an MPI code. */
int eb_control_send(int peer, int what, const void *bytes, size_t num_bytes);

/* Receives one message of a kind, from any rank, of at most *num_bytes; false if there is none. */
bool eb_control_take(int what, void *bytes, int *num_bytes);

#endif
