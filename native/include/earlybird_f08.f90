! Partitioned communication for `use mpi_f08` if the MPI's own module has none (Open MPI 4.1) or an incomplete one: in Open
! MPI 5.0.7, MPI_Psend_init and MPI_Precv_init do not have the argument info. Compile this file with the program and `use
! earlybird_f08` in addition to `mpi_f08`; with Open MPI 5.0, `use earlybird_f08, only: MPI_Psend_init, MPI_Precv_init`. The
! calls are those of MPI 4.0, except that buffers must be contiguous.
! `mpif.h` and `use mpi` need no module: declare the calls EXTERNAL.
module earlybird_f08
  use iso_c_binding, only: c_int
  use mpi_f08, only: MPI_Comm, MPI_Datatype, MPI_Info, MPI_Request, MPI_COUNT_KIND
  implicit none
  private
  public :: MPI_Psend_init, MPI_Precv_init, MPI_Pready, MPI_Pready_range, MPI_Pready_list, MPI_Parrived

  ! libearlybird's functions, under the names that `mpif.h` uses for these calls.
  interface
    subroutine psend_init(buf, partitions, count, datatype, dest, tag, comm, info, request, ierror) &
        bind(C, name='mpi_psend_init_')
      import :: c_int, MPI_COUNT_KIND
      type(*), dimension(*), intent(in), asynchronous :: buf
      integer(c_int), intent(in) :: partitions, datatype, dest, tag, comm, info
      integer(kind=MPI_COUNT_KIND), intent(in) :: count
      integer(c_int), intent(out) :: request, ierror
    end subroutine
    subroutine precv_init(buf, partitions, count, datatype, source, tag, comm, info, request, ierror) &
        bind(C, name='mpi_precv_init_')
      import :: c_int, MPI_COUNT_KIND
      type(*), dimension(*), asynchronous :: buf
      integer(c_int), intent(in) :: partitions, datatype, source, tag, comm, info
      integer(kind=MPI_COUNT_KIND), intent(in) :: count
      integer(c_int), intent(out) :: request, ierror
    end subroutine
    subroutine pready(partition, request, ierror) bind(C, name='mpi_pready_')
      import :: c_int
      integer(c_int), intent(in) :: partition, request
      integer(c_int), intent(out) :: ierror
    end subroutine
    subroutine pready_range(low, high, request, ierror) bind(C, name='mpi_pready_range_')
      import :: c_int
      integer(c_int), intent(in) :: low, high, request
      integer(c_int), intent(out) :: ierror
    end subroutine
    subroutine pready_list(length, partitions, request, ierror) bind(C, name='mpi_pready_list_')
      import :: c_int
      integer(c_int), intent(in) :: length, partitions(*), request
      integer(c_int), intent(out) :: ierror
    end subroutine
    subroutine parrived(request, partition, flag, ierror) bind(C, name='mpi_parrived_')
      import :: c_int
      integer(c_int), intent(in) :: request, partition
      integer(c_int), intent(out) :: flag, ierror
    end subroutine
  end interface

  interface MPI_Psend_init
    procedure Psend_init_f08
  end interface
  interface MPI_Precv_init
    procedure Precv_init_f08
  end interface
  interface MPI_Pready
    procedure Pready_f08
  end interface
  interface MPI_Pready_range
    procedure Pready_range_f08
  end interface
  interface MPI_Pready_list
    procedure Pready_list_f08
  end interface
  interface MPI_Parrived
    procedure Parrived_f08
  end interface

contains

  subroutine Psend_init_f08(buf, partitions, count, datatype, dest, tag, comm, info, request, ierror)
    type(*), dimension(*), intent(in), asynchronous :: buf
    integer, intent(in) :: partitions, dest, tag
    integer(kind=MPI_COUNT_KIND), intent(in) :: count
    type(MPI_Datatype), intent(in) :: datatype
    type(MPI_Comm), intent(in) :: comm
    type(MPI_Info), intent(in) :: info
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call psend_init(buf, partitions, count, datatype%MPI_VAL, dest, tag, comm%MPI_VAL, info%MPI_VAL, request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine Precv_init_f08(buf, partitions, count, datatype, source, tag, comm, info, request, ierror)
    type(*), dimension(*), asynchronous :: buf
    integer, intent(in) :: partitions, source, tag
    integer(kind=MPI_COUNT_KIND), intent(in) :: count
    type(MPI_Datatype), intent(in) :: datatype
    type(MPI_Comm), intent(in) :: comm
    type(MPI_Info), intent(in) :: info
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call precv_init(buf, partitions, count, datatype%MPI_VAL, source, tag, comm%MPI_VAL, info%MPI_VAL, request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine Pready_f08(partition, request, ierror)
    integer, intent(in) :: partition
    type(MPI_Request), intent(in) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call pready(partition, request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine Pready_range_f08(partition_low, partition_high, request, ierror)
    integer, intent(in) :: partition_low, partition_high
    type(MPI_Request), intent(in) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call pready_range(partition_low, partition_high, request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine Pready_list_f08(length, array_of_partitions, request, ierror)
    integer, intent(in) :: length, array_of_partitions(length)
    type(MPI_Request), intent(in) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call pready_list(length, array_of_partitions, request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine Parrived_f08(request, partition, flag, ierror)
    type(MPI_Request), intent(in) :: request
    integer, intent(in) :: partition
    logical, intent(out) :: flag
    integer, optional, intent(out) :: ierror
    integer :: arrived, code
    arrived = 0
    call parrived(request%MPI_VAL, partition, arrived, code)
    flag = arrived /= 0
    if (present(ierror)) ierror = code
  end subroutine

end module
