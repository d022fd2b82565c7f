// Methods `partitioned` and `earlybird`: MPI-4 partitioned communication, by the MPI or by libearlybird.
#pragma once

#include <limits>
#include <string>

#include "harness/mpi/partitioned.hpp"
#include "kernels/methods/method.hpp"

namespace earlybird {

class Partitioned : public Method {
 public:
  struct Options {
    int max_starts = std::numeric_limits<int>::max();  // the request is re-created after this many starts
    std::string info_key, info_value;  // info for libearlybird; none if the key is empty
  };

  Partitioned(Transfer &transfer, const Options &options) : Method(transfer), options_(options), tag_(next_tag()) {
    create_request();
  }
  ~Partitioned() override { MPI_Request_free(&request_); }

  void prepare() override {
    if (num_starts_ == options_.max_starts) {
      MPI_Request_free(&request_);
      create_request();
      num_starts_ = 0;
    }
    ++num_starts_;
  }
  void start() override { MPI_Start(&request_); }
  void ready(int partition) override { MPI_Pready(partition, request_); }
  bool arrived(int partition) override {
    int flag = 0;
    MPI_Parrived(request_, partition, &flag);
    return flag != 0;
  }
  void receive(int thread) override {
    for (int k = transfer_.first_of(thread); k < transfer_.first_of(thread + 1); ++k)
      while (!arrived(k)) transfer_.team.pause();
  }
  void wait() override { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

 private:
  void create_request() {
    const auto count = static_cast<MPI_Count>(transfer_.partition_bytes());
    if (!transfer_.sends()) {
      MPI_Precv_init(transfer_.buffer.data(), transfer_.num_partitions, count, MPI_BYTE, transfer_.peer(), tag_,
                     transfer_.team.comm(), MPI_INFO_NULL, &request_);
      return;
    }
    MPI_Info info = MPI_INFO_NULL;
    if (!options_.info_key.empty()) {
      MPI_Info_create(&info);
      MPI_Info_set(info, options_.info_key.c_str(), options_.info_value.c_str());
    }
    MPI_Psend_init(transfer_.buffer.data(), transfer_.num_partitions, count, MPI_BYTE, transfer_.peer(), tag_,
                   transfer_.team.comm(), info, &request_);
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  }

  // Programs have few requests per tag, and libearlybird is optimized for this case: use different tags.
  static int next_tag() {
    static int num_created = 0;
    return tag + num_created++ % num_tags;
  }
  static constexpr int num_tags = 400;

  const Options options_;
  const int tag_;
  int num_starts_ = 0;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace earlybird
