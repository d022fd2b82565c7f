! Messages for a recorder: compiled for each binding with -DBINDING_MPIF, _MPI or _F08. Every rank sends to the next one:
! three messages of 8, 16 and 24 bytes without blocking, one of 80 bytes with MPI_SENDRECV, one of 800 bytes with a persistent
! request that is started twice; and there is a sum of one double.
#include "binding.h"

program messages
#if defined(BINDING_F08)
  use mpi_f08
#elif defined(BINDING_MPI)
  use mpi
#endif
  implicit none
#if defined(BINDING_MPIF)
  include 'mpif.h'
#endif
  double precision :: sent(100), received(100), total
  REQUEST :: requests(6)
  integer :: rank, num_ranks, next, before, k, ierr

  sent = 1
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, num_ranks, ierr)
  next = modulo(rank + 1, num_ranks)
  before = modulo(rank - 1, num_ranks)
  do k = 1, 3
    call MPI_Irecv(received, k, MPI_DOUBLE_PRECISION, before, k, MPI_COMM_WORLD, requests(k), ierr)
    call MPI_Isend(sent, k, MPI_DOUBLE_PRECISION, next, k, MPI_COMM_WORLD, requests(3 + k), ierr)
  end do
  call MPI_Waitall(6, requests, MPI_STATUSES_IGNORE, ierr)
  call MPI_Sendrecv(sent, 10, MPI_DOUBLE_PRECISION, next, 4, received, 10, MPI_DOUBLE_PRECISION, before, 4, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call MPI_Recv_init(received, 100, MPI_DOUBLE_PRECISION, before, 5, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_Send_init(sent, 100, MPI_DOUBLE_PRECISION, next, 5, MPI_COMM_WORLD, requests(2), ierr)
  do k = 1, 2
    call MPI_Startall(2, requests, ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  end do
  call MPI_Request_free(requests(1), ierr)
  call MPI_Request_free(requests(2), ierr)
  call MPI_Allreduce(sent, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (nint(total) == num_ranks) print '(a)', 'summed'
  call MPI_Finalize(ierr)
end program
