// A window over rank 1's buffer, and a put of one partition into it.
#pragma once

#include <string>

#include "harness/command_line.hpp"
#include "harness/duplicate.hpp"
#include "kernels/ways/way.hpp"

namespace earlybird {

class Window {
 public:
  // Collective. Ends the program in a sentence about `way` where this MPI makes no window.
  Window(Transfer &transfer, const std::string &way) : transfer_(transfer), duplicate_(transfer.team.comm()) {
    // Errors of the call that makes a window are those of its communicator.
    MPI_Comm_set_errhandler(comm(), MPI_ERRORS_RETURN);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "same_disp_unit", "true");
    std::byte *const exposed = transfer.sends() ? nullptr : transfer.buffer.data();
    const auto size_bytes = static_cast<MPI_Aint>(transfer.sends() ? 0 : transfer.size_bytes);
    const int status = MPI_Win_create(exposed, size_bytes, 1, info, comm(), &win_);
    MPI_Info_free(&info);
    MPI_Comm_set_errhandler(comm(), MPI_ERRORS_ARE_FATAL);
    if (!transfer.team.all(status == MPI_SUCCESS))
      refuse("this MPI makes no window for remote memory access here, which the way " + way +
             " puts into; leave the rma- ways out, or give another --mpi");
  }
  ~Window() { MPI_Win_free(&win_); }
  Window(const Window &) = delete;
  Window &operator=(const Window &) = delete;

  MPI_Win win() const { return win_; }
  MPI_Comm comm() const { return duplicate_.comm(); }

  void put(int partition) {
    const int count = static_cast<int>(transfer_.partition_bytes());
    const auto offset = static_cast<MPI_Aint>(transfer_.offset_of(partition));
    MPI_Put(transfer_.partition(partition), count, MPI_BYTE, transfer_.peer(), offset, count, MPI_BYTE, win_);
  }

  // Where memory is of two copies a flushed put is not where rank 1 looks (MPI 4.1 section 12.4): passive ways, whose
  // rank 1 calls nothing on the window, need one.
  void need_one_copy(const std::string &way) const {
    int *model = nullptr, found = 0;
    MPI_Win_get_attr(win_, MPI_WIN_MODEL, &model, &found);
    if (!transfer_.team.all(found && *model == MPI_WIN_UNIFIED))
      refuse("windows of this MPI have copies of their own here (MPI_WIN_SEPARATE), which the way " + way +
             " cannot use; leave it out, or give another --mpi");
  }

 private:
  Transfer &transfer_;
  Duplicate duplicate_;
  MPI_Win win_ = MPI_WIN_NULL;
};

}  // namespace earlybird
