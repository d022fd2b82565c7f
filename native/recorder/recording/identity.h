/* A number for each communicator that is the same on all of its ranks, and another one for its duplicates.
 *
 * No rank asks another one. All ranks of a communicator create others from it in the same order (MPI 4.1 section 6.4.2), so the
 * number follows from that of the parent, from the place in this order, and, as one call may create several, from the first
 * rank of the new group.
 */
#ifndef EB_COMMUNICATOR_IDENTITY_H
#define EB_COMMUNICATOR_IDENTITY_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Before all else, when the MPI has been initialised. */
void eb_identities_begin(MPI_Group world);

/* 0: not known. */
uint64_t eb_identity_of(MPI_Comm comm);

/* A call that is collective over `parent` has created `comm`, which may be MPI_COMM_NULL on this rank. */
void eb_identity_created(MPI_Comm parent, MPI_Comm comm);

/* The same by MPI_Comm_idup: `comm` must not be used yet. */
void eb_identity_promised(MPI_Comm parent, MPI_Comm comm);

/* A call that is collective over the ranks of `comm` only has created it with this tag. */
void eb_identity_created_alone(MPI_Comm comm, int tag);

/* A communicator of this handle is freed, or one was created whose identity is not known: what was promised of it is void. */
void eb_identity_forgotten(MPI_Comm comm);

/* A call that the recorder has seen has created the communicator, and none has freed it: its handle may be looked at before a call
 * that the program makes with it. */
bool eb_identity_is_of_program(MPI_Comm comm);

/* Of the n-th object of this kind over a communicator of this identity, such as a window. 0: not known. */
uint64_t eb_identity_of_object(uint64_t identity, unsigned kind, uint32_t n);

/* Of what is no communicator itself, such as a window: that of no communicator. 0: not known. */
uint64_t eb_identity_of_group(MPI_Group group);

#endif
