// Method `stream`: like `many`, with each thread's communicator bound to its own stream (MPIX_Stream of MPICH).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/text/refuse.hpp"
#include "kernels/methods/method.hpp"

namespace earlybird {

#ifdef EB_HAS_STREAMS

// A stream uses one of the contexts that MPICH reserves for streams. Collective over the team.
class StreamComm {
 public:
  StreamComm(Team &team, const std::string &method) {
    // Errors of calls without a communicator are raised on MPI_COMM_SELF (MPI 4.1 section 9.3); on MPI_COMM_WORLD in MPICH
    // 5.0.2.
    set_handlers(MPI_ERRORS_RETURN);
    const int status = MPIX_Stream_create(MPI_INFO_NULL, &stream_);
    set_handlers(MPI_ERRORS_ARE_FATAL);
    if (!team.all(status == MPI_SUCCESS))
      refuse("this MPI has no stream for every thread, as the method " + method +
             " needs; set MPIR_CVAR_CH4_RESERVE_VCIS to the number of threads, or omit the method");
    MPIX_Stream_comm_create(team.comm(), stream_, &comm_);
  }
  ~StreamComm() {
    MPI_Comm_free(&comm_);
    MPIX_Stream_free(&stream_);
  }
  StreamComm(const StreamComm &) = delete;
  StreamComm &operator=(const StreamComm &) = delete;

  MPI_Comm comm() const { return comm_; }

 private:
  static void set_handlers(MPI_Errhandler handler) {
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  }

  MPIX_Stream stream_ = MPIX_STREAM_NULL;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// No persistent messages: MPICH 5.0.2 waits for a persistent message on a stream without making progress on its context.
class Stream : public Method {
 public:
  Stream(Transfer &transfer, const std::string &name)
      : Method(transfer), requests_(static_cast<std::size_t>(transfer.num_partitions), MPI_REQUEST_NULL) {
    for (int thread = 0; thread < transfer.num_threads; ++thread)
      streams_.push_back(std::make_unique<StreamComm>(transfer.team, name));
  }

  void start() override {
    if (transfer_.sends() || transfer_.threads_receive) return;
    for (int thread = 0; thread < transfer_.num_threads; ++thread) start_receives(thread);
  }
  void ready(int partition) override {
    MPI_Isend(transfer_.partition(partition), count(), MPI_BYTE, transfer_.peer(), tag, comm_of(partition), request(partition));
  }
  // A stream must not be used by two threads at a time, so each thread waits for its own sends.
  void all_of_thread_ready(int thread) override { wait_for(thread); }
  void receive(int thread) override {
    start_receives(thread);
    wait_for(thread);
  }
  void wait() override {
    if (transfer_.sends() || transfer_.threads_receive) return;
    for (int thread = 0; thread < transfer_.num_threads; ++thread) wait_for(thread);
  }

 private:
  int count() const { return static_cast<int>(transfer_.partition_bytes()); }
  MPI_Comm comm_of(int partition) const { return streams_[static_cast<std::size_t>(transfer_.thread_of(partition))]->comm(); }
  MPI_Request *request(int k) { return &requests_[static_cast<std::size_t>(k)]; }
  void start_receives(int thread) {
    for (int k = transfer_.first_of(thread); k < transfer_.first_of(thread + 1); ++k)
      MPI_Irecv(transfer_.partition(k), count(), MPI_BYTE, transfer_.peer(), tag, comm_of(k), request(k));
  }
  void wait_for(int thread) {
    MPI_Waitall(transfer_.partitions_of(thread), request(transfer_.first_of(thread)), MPI_STATUSES_IGNORE);
  }

  std::vector<std::unique_ptr<StreamComm>> streams_;
  std::vector<MPI_Request> requests_;
};

#endif

}  // namespace earlybird
