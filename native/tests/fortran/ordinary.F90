! Knows nothing of partitioned communication.
#include "binding.h"
program ordinary
#if defined(BINDING_F08)
  use mpi_f08
#elif defined(BINDING_MPI)
  use mpi
#endif
  implicit none
#if defined(BINDING_MPIF)
  include 'mpif.h'
#endif
  integer :: rank, num_ranks, ierr, numbers(4), indices(4), num, time
  REQUEST :: requests(4)
  STATUS :: MANY_STATUSES(whats, 4)
  COMM :: made
  call MPI_Init(ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, made, ierr)
  call MPI_Comm_rank(made, rank, ierr)
  call MPI_Comm_size(made, num_ranks, ierr)
  call MPI_Recv_init(numbers(1), 1, MPI_INTEGER, mod(rank + num_ranks - 1, num_ranks), 1, made, requests(1), ierr)
  call MPI_Send_init(numbers(2), 1, MPI_INTEGER, mod(rank + 1, num_ranks), 1, made, requests(2), ierr)
  requests(3) = MPI_REQUEST_NULL
  do time = 1, 100
    numbers = [-1, 10 * time + rank, -1, 20 * time + rank]
    call MPI_Startall(2, requests, ierr)
    call MPI_Irecv(numbers(3), 1, MPI_INTEGER, MPI_ANY_SOURCE, 2, made, requests(3), ierr)
    call MPI_Isend(numbers(4), 1, MPI_INTEGER, mod(rank + 1, num_ranks), 2, made, requests(4), ierr)
    call MPI_Waitsome(4, requests, num, indices, MPI_STATUSES_IGNORE, ierr)
    call MPI_Waitall(4, requests, whats, ierr)
    if (numbers(1) /= 10 * time + mod(rank + num_ranks - 1, num_ranks)) print *, 'wrong', numbers
    if (numbers(3) /= 20 * time + mod(rank + num_ranks - 1, num_ranks)) print *, 'wrong', numbers
  end do
  call MPI_Request_free(requests(1), ierr)
  call MPI_Request_free(requests(2), ierr)
  print '(a)', 'delivered'
  call MPI_Finalize(ierr)
end program
