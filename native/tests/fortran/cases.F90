! Partitioned requests in Fortran: compiled for each binding with -DBINDING_MPIF, _MPI or _F08. Every rank sends to the next
! one and receives from the one before. Prints as the cases in C do.
#include "binding.h"

#if defined(BINDING_F08)
#define BINDING use mpi_f08
#elif defined(BINDING_MPI)
#define BINDING use mpi
#else
#define BINDING
#endif

module side
#if defined(INFO_IS_MISSING)
  use earlybird_f08, only: MPI_Psend_init, MPI_Precv_init ! mpi_f08 of Open MPI 5.0.7 forgets an argument of these
#elif !defined(OWN_PARTITIONED) && defined(BINDING_F08)
  use earlybird_f08
#endif
  BINDING
  use iso_c_binding
  implicit none
#if defined(BINDING_MPIF)
  include 'mpif.h'
#endif
#if !defined(OWN_PARTITIONED) && !defined(BINDING_F08)
  external :: MPI_Psend_init, MPI_Precv_init, MPI_Pready, MPI_Pready_range, MPI_Pready_list, MPI_Parrived
#endif

  integer, parameter :: partitions = 6, elements = 500, total = partitions * elements, tag = 17
  integer(kind=MPI_COUNT_KIND), parameter :: elements_of_one = elements
  integer :: rank, num_ranks, next, before, num_failures, ierr
  character(len=100) :: case_name
  double precision, asynchronous :: sent(total), received(total)

  interface
    integer(c_int) function c_make(sends, buffer, parts, count, peer, its_tag, its_comm) bind(C)
      import :: c_int, c_double
      integer(c_int), value :: sends, parts, count, peer, its_tag, its_comm
      real(c_double), asynchronous :: buffer(*)
    end function
    integer(c_int) function c_start(handle) bind(C)
      import :: c_int
      integer(c_int), value :: handle
    end function
    integer(c_int) function c_pready(handle, low, high) bind(C)
      import :: c_int
      integer(c_int), value :: handle, low, high
    end function
    integer(c_int) function c_wait(handle, its_source, its_tag, count) bind(C)
      import :: c_int
      integer(c_int) :: handle, its_source, its_tag, count
    end function
    integer(c_int) function c_free(handle) bind(C)
      import :: c_int
      integer(c_int) :: handle
    end function
    integer(c_int) function c_says(code, text) bind(C)
      import :: c_int, c_char
      integer(c_int), value :: code
      character(kind=c_char) :: text(*)
    end function
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

  ! The error codes of the calls are looked at, too.
  subroutine succeed(code, call_name)
    integer, intent(in) :: code
    character(len=*), intent(in) :: call_name
    call expect(code == MPI_SUCCESS, call_name // ' returned an error')
  end subroutine

  pure double precision function value_of(from, time, at)
    integer, intent(in) :: from, time, at
    value_of = 1d6 * from + 1d4 * time + at
  end function

  subroutine prepare(time)
    integer, intent(in) :: time
    integer :: k
    sent = [(value_of(rank, time, k), k = 1, total)]
    received = -1
  end subroutine

  subroutine check(time)
    integer, intent(in) :: time
    integer :: k
    call expect(all(received == [(value_of(before, time, k), k = 1, total)]), 'wrong data was received')
  end subroutine

  subroutine make(on, sending, receiving)
    COMM, intent(in) :: on
    REQUEST, intent(out) :: sending, receiving
    call MPI_Psend_init(sent, partitions, elements_of_one, MPI_DOUBLE_PRECISION, next, tag, on, MPI_INFO_NULL, sending, ierr)
    call succeed(ierr, 'MPI_Psend_init')
    call MPI_Precv_init(received, partitions, elements_of_one, MPI_DOUBLE_PRECISION, before, tag, on, MPI_INFO_NULL, receiving, &
                        ierr)
    call succeed(ierr, 'MPI_Precv_init')
  end subroutine

  subroutine free_both(sending, receiving)
    REQUEST, intent(inout) :: sending, receiving
    call MPI_Request_free(sending, ierr)
    call succeed(ierr, 'MPI_Request_free')
    call MPI_Request_free(receiving, ierr)
    call expect(sending == MPI_REQUEST_NULL .and. receiving == MPI_REQUEST_NULL, 'a freed request is not null')
  end subroutine

  ! In different orders from time to time; late, so that who does not wait has no data.
  subroutine ready(sending, time)
    REQUEST, intent(in) :: sending
    integer, intent(in) :: time
    integer :: k
    call c_pause(30)
    select case (mod(time, 3))
    case (0)
      do k = partitions - 1, 0, -1
        call MPI_Pready(k, sending, ierr)
        call succeed(ierr, 'MPI_Pready')
      end do
    case (1)
      call MPI_Pready_range(3, partitions - 1, sending, ierr)
      call succeed(ierr, 'MPI_Pready_range')
      call MPI_Pready_range(0, 2, sending, ierr)
    case (2)
      call MPI_Pready_list(partitions, [4, 0, 2, 5, 1, 3], sending, ierr)
      call succeed(ierr, 'MPI_Pready_list')
    end select
  end subroutine

  logical function has_arrived(request_, partition)
    REQUEST, intent(in) :: request_
    integer, intent(in) :: partition
#if defined(PARRIVED_FLAG_IS_INTEGER)
    integer :: flag ! so say `use mpi` of MPICH 4.0.2 and of Intel MPI 2021.18 for gfortran
    call MPI_Parrived(request_, partition, flag, ierr)
    has_arrived = flag /= 0
#else
    call MPI_Parrived(request_, partition, has_arrived, ierr)
#endif
    call succeed(ierr, 'MPI_Parrived')
  end function

  subroutine check_status(what)
    STATUS, intent(in) :: ONE_STATUS(what)
    integer :: count
    call MPI_Get_count(what, MPI_DOUBLE_PRECISION, count, ierr)
    call expect(SOURCE_OF(what) == before, 'the status has a wrong source')
    call expect(TAG_OF(what) == tag, 'the status has a wrong tag')
    call expect(count == total, 'the status has a wrong count')
  end subroutine

  ! Transfers over a communicator, which must be libearlybird's.
  subroutine transfer(on, times)
    COMM, intent(in) :: on
    integer, intent(in) :: times
    REQUEST :: sending, receiving
    STATUS :: ONE_STATUS(what)
    integer :: time
    call MPI_Comm_set_errhandler(on, MPI_ERRORS_RETURN, ierr)
    call make(on, sending, receiving)
    do time = 1, times
      call prepare(time)
      call MPI_Start(receiving, ierr)
      call succeed(ierr, 'MPI_Start')
      call MPI_Start(sending, ierr)
      call ready(sending, time)
      call MPI_Pready(0, sending, ierr)
      call expect(c_says(ierr, 'MPI_Pready was called twice' // c_null_char) == 1, 'the request is not of libearlybird')
      call MPI_Wait(receiving, what, ierr)
      call succeed(ierr, 'MPI_Wait')
      call check(time)
      call check_status(what)
      call MPI_Wait(sending, MPI_STATUS_IGNORE, ierr)
      call expect(receiving /= MPI_REQUEST_NULL .and. sending /= MPI_REQUEST_NULL, 'MPI_Wait freed a request')
    end do
    call free_both(sending, receiving)
  end subroutine

end module

module cases
  use side
  implicit none
contains

  subroutine transfers_deliver_and_restart(on)
    COMM, intent(in) :: on
    call transfer(on, 20)
  end subroutine

  subroutine parrived_tells_what_has_come(on)
    COMM, intent(in) :: on
    REQUEST :: requests(2)
    integer :: k
    call make(on, requests(1), requests(2))
    call prepare(1)
    call MPI_Startall(2, requests, ierr)
    call succeed(ierr, 'MPI_Startall')
    call expect(.not. has_arrived(requests(2), 1), 'MPI_Parrived is true too early')
    call MPI_Barrier(on, ierr)
    call ready(requests(1), 0)
    do k = 0, partitions - 1
      do while (.not. has_arrived(requests(2), k))
      end do
      call expect(received(k * elements + 1) == value_of(before, 1, k * elements + 1), 'a partition that arrived is not there')
    end do
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    call check(1)
    call free_both(requests(1), requests(2))
  end subroutine

  subroutine test_is_false_until_all_has_come(on)
    COMM, intent(in) :: on
    REQUEST :: sending, receiving
    STATUS :: ONE_STATUS(what)
    logical :: flag
    call make(on, sending, receiving)
    call prepare(2)
    call MPI_Start(receiving, ierr)
    call MPI_Start(sending, ierr)
    call MPI_Test(receiving, flag, what, ierr)
    call expect(.not. flag, 'MPI_Test is true too early')
    call MPI_Request_get_status(receiving, flag, what, ierr)
    call expect(.not. flag, 'MPI_Request_get_status is true too early')
    call MPI_Barrier(on, ierr)
    call ready(sending, 2)
    do while (.not. flag)
      call MPI_Request_get_status(receiving, flag, what, ierr)
    end do
    call check_status(what)
    call check(2)
    flag = .false.
    call MPI_Test(receiving, flag, what, ierr)
    call expect(flag, 'MPI_Test did not tell')
    call check_status(what)
    flag = .false.
    do while (.not. flag)
      call MPI_Test(sending, flag, MPI_STATUS_IGNORE, ierr)
    end do
    call free_both(sending, receiving)
  end subroutine

  ! What the MPI calls the first request: 1, but 0 in mpi_f08 of MPICH 4.0.2. Asked while no request of ours lives.
  integer function first_index(on, which)
    COMM, intent(in) :: on
    character(len=*), intent(in) :: which
    REQUEST :: requests(2)
    integer :: number, num, indices(2)
    logical :: flag
    requests(1) = MPI_REQUEST_NULL
    call MPI_Irecv(number, 1, MPI_INTEGER, rank, 4, on, requests(2), ierr)
    call MPI_Send(rank, 1, MPI_INTEGER, rank, 4, on, ierr)
    num = 0
    flag = .false.
    do while (num == 0 .and. .not. flag)
      select case (which)
      case ('waitany')
        call MPI_Waitany(2, requests, indices(1), MPI_STATUS_IGNORE, ierr)
        num = 1
      case ('testany')
        call MPI_Testany(2, requests, indices(1), flag, MPI_STATUS_IGNORE, ierr)
      case ('waitsome')
        call MPI_Waitsome(2, requests, num, indices, MPI_STATUSES_IGNORE, ierr)
      case ('testsome')
        call MPI_Testsome(2, requests, num, indices, MPI_STATUSES_IGNORE, ierr)
      end select
    end do
    first_index = indices(1) - 1
    call expect(first_index == 0 .or. first_index == 1, 'an ordinary request has a wrong index')
  end function

  ! Calls for several requests, ours at 2 and 4, an ordinary pair at 1 and 5, a null one at 3.
  subroutine complete_several(on, which)
    COMM, intent(in) :: on
    character(len=*), intent(in) :: which
    REQUEST :: requests(5)
    STATUS :: ONE_STATUS(what), MANY_STATUSES(whats, 5)
    logical :: flag, done(5)
    integer :: numbers(2), indices(5), num, time, k, at, first
    first = 1
    if (index(which, 'all') == 0) first = first_index(on, which)
    call make(on, requests(4), requests(2))
    requests(3) = MPI_REQUEST_NULL
    do time = 1, 9
      call prepare(time)
      numbers = [100 * rank + time, -1]
      call MPI_Irecv(numbers(2), 1, MPI_INTEGER, before, 3, on, requests(1), ierr)
      call MPI_Start(requests(2), ierr)
      call MPI_Start(requests(4), ierr)
      call MPI_Isend(numbers(1), 1, MPI_INTEGER, next, 3, on, requests(5), ierr)
      done = [.false., .false., .true., .false., .false.]
      if (which(1:4) == 'test') then
        call take()
        call expect(.not. done(2), 'a test is true too early')
        call MPI_Barrier(on, ierr)
      end if
      call ready(requests(4), time)
      do while (.not. all(done))
        call take()
      end do
      call check(time)
      call expect(numbers(2) == 100 * before + time, 'the ordinary message is wrong')
    end do
    call free_both(requests(4), requests(2))

  contains

    subroutine note(which_one, its)
      integer, intent(in) :: which_one
      STATUS, intent(in) :: ONE_STATUS(its)
      call expect(which_one >= 1 .and. which_one <= 5, 'an index is out of range')
      if (which_one < 1 .or. which_one > 5) return
      call expect(.not. done(which_one), 'a request was completed twice')
      done(which_one) = .true.
      if (which_one == 2) call check_status(its)
      if (which_one == 1) call expect(SOURCE_OF(its) == before .and. TAG_OF(its) == 3, 'the ordinary status is wrong')
    end subroutine

    subroutine take()
      flag = .true.
      num = 0
      select case (which)
      case ('waitall')
        call MPI_Waitall(5, requests, whats, ierr)
        call note(1, STATUS_AT(whats, 1))
        call note(2, STATUS_AT(whats, 2))
        done = .true.
      case ('testall')
        call MPI_Testall(5, requests, flag, whats, ierr)
        if (flag) call note(2, STATUS_AT(whats, 2))
        done = flag .or. done
      case ('waitany')
        call MPI_Waitany(5, requests, at, what, ierr)
        call note(at + 1 - first, what)
      case ('testany')
        call MPI_Testany(5, requests, at, flag, what, ierr)
        if (flag) call note(at + 1 - first, what)
      case ('waitsome')
        call MPI_Waitsome(5, requests, num, indices, whats, ierr)
        call expect(num > 0, 'MPI_Waitsome completed nothing')
      case ('testsome')
        call MPI_Testsome(5, requests, num, indices, whats, ierr)
      end select
      call succeed(ierr, which)
      do k = 1, num
        call note(indices(k) + 1 - first, STATUS_AT(whats, k))
      end do
    end subroutine

  end subroutine

  subroutine statuses_can_be_ignored(on)
    COMM, intent(in) :: on
    REQUEST :: requests(2)
    logical :: flag
    integer :: time, index, num, indices(2)
    call make(on, requests(1), requests(2))
    do time = 1, 6
      call prepare(time)
      call MPI_Startall(2, requests, ierr)
      call ready(requests(1), time)
      flag = .false.
      select case (time)
      case (1)
        call MPI_Wait(requests(2), MPI_STATUS_IGNORE, ierr)
      case (2)
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
      case (3)
        do while (.not. flag)
          call MPI_Testall(2, requests, flag, MPI_STATUSES_IGNORE, ierr)
        end do
      case (4)
        call MPI_Waitany(2, requests, index, MPI_STATUS_IGNORE, ierr)
      case (5)
        call MPI_Waitsome(2, requests, num, indices, MPI_STATUSES_IGNORE, ierr)
      case (6)
        do while (.not. flag)
          call MPI_Test(requests(2), flag, MPI_STATUS_IGNORE, ierr)
        end do
      end select
      call succeed(ierr, 'a call without statuses')
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
      call check(time)
    end do
    call free_both(requests(1), requests(2))
  end subroutine

  ! Made, started and made ready in C, completed here, and the other way round.
  subroutine requests_of_C_complete_in_Fortran(on)
    COMM, intent(in) :: on
    REQUEST :: sending, receiving
    STATUS :: ONE_STATUS(what)
    integer :: time
    NUMBER(sending) = c_make(1, sent, partitions, elements, next, tag, NUMBER(on))
    NUMBER(receiving) = c_make(0, received, partitions, elements, before, tag, NUMBER(on))
    do time = 1, 4
      call prepare(time)
      call expect(c_start(NUMBER(receiving)) == MPI_SUCCESS, 'MPI_Start failed in C')
      call expect(c_start(NUMBER(sending)) == MPI_SUCCESS, 'MPI_Start failed in C')
      call c_pause(30)
      call expect(c_pready(NUMBER(sending), 0, partitions - 1) == MPI_SUCCESS, 'MPI_Pready_range failed in C')
      call MPI_Wait(receiving, what, ierr)
      call check(time)
      call check_status(what)
      call MPI_Wait(sending, MPI_STATUS_IGNORE, ierr)
    end do
    call free_both(sending, receiving)
  end subroutine

  subroutine requests_of_Fortran_complete_in_C(on)
    COMM, intent(in) :: on
    REQUEST :: sending, receiving
    integer :: time, its_source, its_tag, count
    call make(on, sending, receiving)
    do time = 1, 4
      call prepare(time)
      call MPI_Start(receiving, ierr)
      call MPI_Start(sending, ierr)
      call ready(sending, time)
      call expect(c_wait(NUMBER(receiving), its_source, its_tag, count) == MPI_SUCCESS, 'MPI_Wait failed in C')
      call check(time)
      call expect(its_source == before .and. its_tag == tag .and. count == total, 'the status in C is wrong')
      call expect(c_wait(NUMBER(sending), its_source, its_tag, count) == MPI_SUCCESS, 'MPI_Wait failed in C')
    end do
    call expect(c_free(NUMBER(sending)) == MPI_SUCCESS, 'MPI_Request_free failed in C')
    call expect(c_free(NUMBER(receiving)) == MPI_SUCCESS, 'MPI_Request_free failed in C')
    call expect(sending == MPI_REQUEST_NULL .and. receiving == MPI_REQUEST_NULL, 'a request freed in C is not null')
  end subroutine

  ! ierror may be left out of f08's calls alone.
  subroutine errors_are_told(on)
    COMM, intent(in) :: on
    REQUEST :: sending, receiving
    call MPI_Comm_set_errhandler(on, MPI_ERRORS_RETURN, ierr)
    call make(on, sending, receiving)
    call prepare(1)
    call MPI_Start(sending, ierr)
    call MPI_Start(sending, ierr)
    call expect(c_says(ierr, 'MPI_Start was called with an active request' // c_null_char) == 1, 'started twice')
    call MPI_Cancel(sending, ierr)
    call expect(c_says(ierr, 'cannot be cancelled' // c_null_char) == 1, 'cancelled')
    call MPI_Request_free(sending, ierr)
    call expect(ierr /= MPI_SUCCESS, 'freed while active')
    call MPI_Pready(partitions, sending, ierr)
    call expect(c_says(ierr, 'out of range' // c_null_char) == 1, 'ready out of range')
    call MPI_Start(receiving, ierr)
    call ready(sending, 1)
#if defined(BINDING_F08)
    call MPI_Wait(receiving, MPI_STATUS_IGNORE)
    call MPI_Wait(sending, MPI_STATUS_IGNORE)
#else
    call MPI_Wait(receiving, MPI_STATUS_IGNORE, ierr)
    call MPI_Wait(sending, MPI_STATUS_IGNORE, ierr)
#endif
    call check(1)
    call free_both(sending, receiving)
  end subroutine

  subroutine communicators_made_in_Fortran_carry_transfers(on)
    COMM, intent(in) :: on
    COMM :: made, split, inter
    GROUP :: group
    REQUEST :: request
    integer :: weight(1)
    call MPI_Comm_dup(on, made, ierr)
    call transfer_and_free()
    call MPI_Comm_dup_with_info(on, MPI_INFO_NULL, made, ierr)
    call transfer_and_free()
    call MPI_Comm_idup(on, made, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call transfer_and_free()
    call MPI_Comm_group(on, group, ierr)
    call MPI_Comm_create(on, group, made, ierr)
    call transfer_and_free()
    call MPI_Comm_create_group(on, group, 5, made, ierr)
    call transfer_and_free()
    call MPI_Group_free(group, ierr)
    call MPI_Comm_split(on, 1, rank, made, ierr)
    call transfer_and_free()
    call MPI_Comm_split_type(on, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, made, ierr)
    call transfer_and_free()
    call MPI_Cart_create(on, 1, [num_ranks], [.true.], .false., made, ierr)
    call transfer(made, 1)
    split = made
    call MPI_Cart_sub(split, [.true.], made, ierr)
    call MPI_Comm_free(split, ierr)
    call transfer_and_free()
    weight = 1
    call MPI_Dist_graph_create_adjacent(on, 1, [before], weight, 1, [next], weight, MPI_INFO_NULL, .false., made, ierr)
    call transfer_and_free()
    call MPI_Dist_graph_create(on, 1, [rank], [1], [next], weight, MPI_INFO_NULL, .false., made, ierr)
    call transfer_and_free()
    call MPI_Comm_split(on, min(rank, 1), rank, split, ierr)
    call MPI_Intercomm_create(split, 0, on, merge(1, 0, rank == 0), 9, inter, ierr)
    call MPI_Intercomm_merge(inter, rank > 0, made, ierr)
    call transfer_and_free()
    call MPI_Comm_free(inter, ierr)
    call MPI_Comm_free(split, ierr)
  contains
    subroutine transfer_and_free()
      call succeed(ierr, 'a constructor of communicators')
      call transfer(made, 2)
      call MPI_Comm_free(made, ierr)
    end subroutine
  end subroutine

end module

program main
  use cases
  implicit none
  integer :: argument, everywhere, provided
  COMM :: fresh
  call get_command_argument(1, case_name)
  if (case_name == '--threads') then
    call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, ierr)
  else
    call MPI_Init(ierr)
  end if
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, num_ranks, ierr)
  next = mod(rank + 1, num_ranks)
  before = mod(rank + num_ranks - 1, num_ranks)
  do argument = 1, command_argument_count()
    call get_command_argument(argument, case_name)
    if (case_name == '--threads') cycle
    num_failures = 0
    call tell('begin ')
    call MPI_Comm_dup(MPI_COMM_WORLD, fresh, ierr)
    select case (case_name)
    case ('transfers_deliver_and_restart')
      call transfers_deliver_and_restart(fresh)
    case ('parrived_tells_what_has_come')
      call parrived_tells_what_has_come(fresh)
    case ('test_is_false_until_all_has_come')
      call test_is_false_until_all_has_come(fresh)
    case ('waitall', 'testall', 'waitany', 'testany', 'waitsome', 'testsome')
      call complete_several(fresh, trim(case_name))
    case ('statuses_can_be_ignored')
      call statuses_can_be_ignored(fresh)
    case ('requests_of_C_complete_in_Fortran')
      call requests_of_C_complete_in_Fortran(fresh)
    case ('requests_of_Fortran_complete_in_C')
      call requests_of_Fortran_complete_in_C(fresh)
    case ('errors_are_told')
      call errors_are_told(fresh)
    case ('communicators_made_in_Fortran_carry_transfers')
      call communicators_made_in_Fortran_carry_transfers(fresh)
    case default
      call expect(.false., 'there is no such case')
    end select
    call MPI_Comm_free(fresh, ierr)
    call MPI_Allreduce(num_failures, everywhere, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (everywhere == 0) call tell('ok ')
  end do
  call MPI_Finalize(ierr)
contains
  subroutine tell(word)
    character(len=*), intent(in) :: word
    if (rank > 0) return
    print '(2a)', word, trim(case_name)
    flush (6)
  end subroutine
end program
