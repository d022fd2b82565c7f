! What `mpi_f08` calls, by the names of its functions: for Intel MPI, whose module mpi_f08 only its own compiler can read.
! Each case transfers with another call that completes.
module calls
  use mpi
  use iso_c_binding
  implicit none
  external :: MPI_Init_f08, MPI_Finalize_f08, MPI_Comm_dup_f08, MPI_Start_f08, MPI_Startall_f08, MPI_Pready_f08, &
              MPI_Pready_range_f08, MPI_Pready_list_f08, MPI_Wait_f08, MPI_Waitall_f08, MPI_Waitany_f08, MPI_Waitsome_f08, &
              MPI_Test_f08, MPI_Testall_f08, MPI_Testany_f08, MPI_Testsome_f08, MPI_Request_get_status_f08, &
              MPI_Request_free_f08, MPI_Psend_init, MPI_Precv_init
  integer, parameter :: partitions = 4, elements = 1000, total = partitions * elements
  integer(kind=MPI_COUNT_KIND), parameter :: elements_of_one = elements
  integer :: rank, num_ranks, ierr, num_failures, fresh
  character(len=40) :: case_name
  double precision, asynchronous :: sent(total), received(total)
  interface
    subroutine c_pause(milliseconds) bind(C)
      import :: c_int
      integer(c_int), value :: milliseconds
    end subroutine
  end interface

contains

  subroutine expect(condition, why)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: why
    if (condition) return
    num_failures = num_failures + 1
    print '(5a, i0)', 'failed ', trim(case_name), ': ', why, ' on rank ', rank
    flush (6)
  end subroutine

  subroutine transfer()
    integer :: requests(2), statuses(MPI_STATUS_SIZE, 2), indices(2), time, num, k, next, before, its_flag, count
    next = mod(rank + 1, num_ranks)
    before = mod(rank + num_ranks - 1, num_ranks)
    call MPI_Psend_init(sent, partitions, elements_of_one, MPI_DOUBLE_PRECISION, next, 5, fresh, MPI_INFO_NULL, requests(1), ierr)
    call MPI_Precv_init(received, partitions, elements_of_one, MPI_DOUBLE_PRECISION, before, 5, fresh, MPI_INFO_NULL, &
                        requests(2), ierr)
    do time = 1, 6
      sent = [(1d6 * rank + 1d4 * time + k, k = 1, total)]
      received = -1
      statuses = -1
      if (mod(time, 2) == 0) call MPI_Startall_f08(2, requests, ierr)
      if (mod(time, 2) == 1) then
        call MPI_Start_f08(requests(2), ierr)
        call MPI_Start_f08(requests(1), ierr)
      end if
      call expect(ierr == MPI_SUCCESS, 'a start failed')
      call c_pause(30)
      select case (mod(time, 3))
      case (0)
        do k = partitions - 1, 0, -1
          call MPI_Pready_f08(k, requests(1), ierr)
        end do
      case (1)
        call MPI_Pready_range_f08(0, partitions - 1, requests(1), ierr)
      case (2)
        call MPI_Pready_list_f08(partitions, [2, 0, 3, 1], requests(1), ierr)
      end select
      call expect(ierr == MPI_SUCCESS, 'a partition was not made ready')
      num = 0
      its_flag = 0
      select case (case_name)
      case ('wait')
        call MPI_Wait_f08(requests(2), statuses(:, 2), ierr)
      case ('waitall')
        call MPI_Waitall_f08(2, requests, statuses, ierr)
      case ('waitany')
        indices(1) = 0
        do while (num < 2)
          call MPI_Waitany_f08(2, requests, indices(1), statuses(:, 2), ierr)
          num = merge(2, num + 1, indices(1) == 2)
        end do
      case ('waitsome')
        indices = 0
        do while (all(indices(:num) /= 2))
          call MPI_Waitsome_f08(2, requests, num, indices, statuses, ierr)
        end do
        if (indices(1) == 2) statuses(:, 2) = statuses(:, 1)
      case ('test')
        do while (iand(its_flag, 1) == 0)
          call MPI_Test_f08(requests(2), its_flag, statuses(:, 2), ierr)
        end do
      case ('testall')
        do while (iand(its_flag, 1) == 0)
          call MPI_Testall_f08(2, requests, its_flag, statuses, ierr)
        end do
      case ('testany')
        indices(1) = 0
        do while (iand(its_flag, 1) == 0 .or. indices(1) /= 2)
          call MPI_Testany_f08(2, requests, indices(1), its_flag, statuses(:, 2), ierr)
        end do
      case ('testsome')
        indices = 0
        do while (all(indices(:num) /= 2))
          call MPI_Testsome_f08(2, requests, num, indices, statuses, ierr)
        end do
        if (indices(1) == 2) statuses(:, 2) = statuses(:, 1)
      case ('get_status')
        do while (iand(its_flag, 1) == 0)
          ! The one function of 2021.18 that takes a handle and not where it is.
          call MPI_Request_get_status_f08(%val(requests(2)), its_flag, statuses(:, 2), ierr)
        end do
      end select
      call expect(ierr == MPI_SUCCESS, 'a call that completes failed')
      call expect(all(received == [(1d6 * before + 1d4 * time + k, k = 1, total)]), 'wrong data was received')
      call MPI_Get_count(statuses(:, 2), MPI_DOUBLE_PRECISION, count, ierr)
      call expect(statuses(MPI_SOURCE, 2) == before .and. statuses(MPI_TAG, 2) == 5 .and. count == total, 'the status is wrong')
      call MPI_Waitall_f08(2, requests, statuses, ierr)
    end do
    call MPI_Request_free_f08(requests(1), ierr)
    call MPI_Request_free_f08(requests(2), ierr)
    call expect(all(requests == MPI_REQUEST_NULL), 'a freed request is not null')
  end subroutine

end module

program main
  use calls
  implicit none
  integer :: argument, everywhere
  call MPI_Init_f08(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, num_ranks, ierr)
  do argument = 1, command_argument_count()
    call get_command_argument(argument, case_name)
    num_failures = 0
    if (rank == 0) print '(2a)', 'begin ', trim(case_name)
    flush (6)
    call MPI_Comm_dup_f08(MPI_COMM_WORLD, fresh, ierr)
    call transfer()
    call MPI_Comm_free(fresh, ierr)
    call MPI_Allreduce(num_failures, everywhere, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (rank == 0 .and. everywhere == 0) print '(2a)', 'ok ', trim(case_name)
    flush (6)
  end do
  call MPI_Finalize_f08(ierr)
end program
