// Methods `partitioned` and `earlybird`: MPI-4 partitioned communication, of whoever answers its calls.
#pragma once

#include <limits>
#include <string>

#include "harness/partitioned.hpp"
#include "kernels/methods/method.hpp"

namespace earlybird {

class Partitioned : public Method {
 public:
  struct Settings {
    int max_starts = std::numeric_limits<int>::max();  // a request is made anew after so many
    std::string info_key, info_value;  // what libearlybird is told; an empty key leaves all to the library
  };

  Partitioned(Transfer &transfer, const Settings &settings) : Method(transfer), settings_(settings), tag_(next_tag()) {
    make();
  }
  ~Partitioned() override { MPI_Request_free(&request_); }

  void prepare() override {
    if (num_starts_ == settings_.max_starts) {
      MPI_Request_free(&request_);
      make();
      num_starts_ = 0;
    }
    ++num_starts_;
  }
  void start() override { MPI_Start(&request_); }
  void ready(int partition) override { MPI_Pready(partition, request_); }
  void wait() override { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

 private:
  void make() {
    const auto count = static_cast<MPI_Count>(transfer_.partition_bytes());
    if (!transfer_.sends()) {
      MPI_Precv_init(transfer_.buffer.data(), transfer_.num_partitions, count, MPI_BYTE, transfer_.peer(), tag_,
                     transfer_.team.comm(), MPI_INFO_NULL, &request_);
      return;
    }
    MPI_Info info = MPI_INFO_NULL;
    if (!settings_.info_key.empty()) {
      MPI_Info_create(&info);
      MPI_Info_set(info, settings_.info_key.c_str(), settings_.info_value.c_str());
    }
    MPI_Psend_init(transfer_.buffer.data(), transfer_.num_partitions, count, MPI_BYTE, transfer_.peer(), tag_,
                   transfer_.team.comm(), info, &request_);
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  }

  // A program has few requests of one tag; libearlybird treats the first ones of a tag as the usual case.
  static int next_tag() {
    static int made = 0;
    return tag + made++ % num_tags;
  }
  static constexpr int num_tags = 400;

  const Settings settings_;
  const int tag_;
  int num_starts_ = 0;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace earlybird
