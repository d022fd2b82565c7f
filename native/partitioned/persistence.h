/* What runs keep for later ones: costs of messages and results of trials. */
#ifndef EB_PERSISTENCE_H
#define EB_PERSISTENCE_H

/* Fills in the costs of the configuration, and adds the results that earlier runs have kept; the same on every rank, of which
 * rank 0 of the domain reads the file. Measures costs that are neither stated nor kept, or kept for too long, and keeps them.
 * Collective over the domain. */
void eb_persistence_begin(void);

/* Rank 0 keeps what its own requests have found. A remark if this, or keeping the costs, failed, otherwise NULL. */
const char *eb_persistence_end(void);

#endif
