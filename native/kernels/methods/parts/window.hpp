// A window over some partitions of rank 1's buffer, and puts of these partitions.
#pragma once

#include <string>

#include "harness/text/refuse.hpp"
#include "kernels/methods/parts/transfer.hpp"

namespace earlybird {

class Window {
 public:
  // Over all partitions. Collective; ends the program with a message about `method` if this MPI cannot create a window.
  Window(Transfer &transfer, const std::string &method) : Window(transfer, method, 0, transfer.num_partitions) {}

  // Over the partitions of one thread: the result of concurrent puts into overlapping windows is undefined, even at
  // different locations (MPI 4.1 section 12.2.1).
  Window(Transfer &transfer, const std::string &method, int thread)
      : Window(transfer, method, transfer.first_of(thread), transfer.first_of(thread + 1)) {}

  ~Window() { MPI_Win_free(&win_); }
  Window(const Window &) = delete;
  Window &operator=(const Window &) = delete;

  MPI_Win win() const { return win_; }

  void put(int partition) {
    const int count = static_cast<int>(transfer_.partition_bytes());
    const auto offset = static_cast<MPI_Aint>(transfer_.offset_of(partition) - begin_);
    MPI_Put(transfer_.partition(partition), count, MPI_BYTE, transfer_.peer(), offset, count, MPI_BYTE, win_);
  }

  // In the separate memory model, a flushed put is not visible in rank 1's private copy (MPI 4.1 section 12.4). Passive
  // methods, in which rank 1 makes no call on the window, need the unified model.
  void require_unified_memory(const std::string &method) const {
    int *model = nullptr, found = 0;
    MPI_Win_get_attr(win_, MPI_WIN_MODEL, &model, &found);
    if (!transfer_.team.all(found && *model == MPI_WIN_UNIFIED))
      refuse("this MPI has windows of the separate memory model here (MPI_WIN_SEPARATE), which the method " + method +
             " cannot use; omit it, or give another --mpi");
  }

 private:
  // Over the partitions from `first` to before `end`.
  Window(Transfer &transfer, const std::string &method, int first, int end)
      : transfer_(transfer), begin_(transfer.offset_of(first)) {
    // Not a duplicate: the MPI itself duplicates the communicator for each window, and MPICH assigns its contexts to
    // communicators in turn, so that windows of duplicates would only get every second context.
    const MPI_Comm comm = transfer.team.comm();
    // Errors in MPI_Win_create are raised on its communicator.
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "same_disp_unit", "true");
    std::byte *const exposed = transfer.sends() ? nullptr : transfer.buffer.data() + begin_;
    const auto size_bytes = static_cast<MPI_Aint>(transfer.sends() ? 0 : transfer.offset_of(end) - begin_);
    const int status = MPI_Win_create(exposed, size_bytes, 1, info, comm, &win_);
    MPI_Info_free(&info);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    if (!transfer.team.all(status == MPI_SUCCESS))
      refuse("this MPI cannot create a window for remote memory access here, which the method " + method +
             " needs; omit the rma- methods, or give another --mpi");
  }

  Transfer &transfer_;
  const std::size_t begin_;  // offset of the exposed part of the buffer
  MPI_Win win_ = MPI_WIN_NULL;
};

}  // namespace earlybird
