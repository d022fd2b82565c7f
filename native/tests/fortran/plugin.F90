! Loaded while a C program runs: completes the request it is given, in each binding.
#include "binding.h"
subroutine complete(number) bind(C)
#if defined(BINDING_F08)
  use mpi_f08
#elif defined(BINDING_MPI)
  use mpi
#endif
  use iso_c_binding
  implicit none
#if defined(BINDING_MPIF)
  include 'mpif.h'
#endif
  integer(c_int) :: number
  integer :: ierr
  REQUEST :: its_request
  STATUS :: ONE_STATUS(what)
  NUMBER(its_request) = number
  call MPI_Wait(its_request, what, ierr)
  number = NUMBER(its_request)
end subroutine
