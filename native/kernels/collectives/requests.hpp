// Requests of the segments under way: a row of them for each, used again when the segment is through.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace earlybird {

// How many segments of one sender and receiver are under way at a time: enough that the next is always there while one
// is handed on, few enough that queues of messages stay short, which take longer to search the longer they are.
constexpr std::size_t segments_under_way = 8;

class Requests {
 public:
  explicit Requests(std::size_t width) : width_(width), all_(width * segments_under_way, MPI_REQUEST_NULL) {}

  // The requests of segment k, of which there are width().
  MPI_Request *of(std::size_t k) { return all_.data() + k % segments_under_way * width_; }
  int width() const { return static_cast<int>(width_); }

  MPI_Request *all() { return all_.data(); }
  int count() const { return static_cast<int>(all_.size()); }

 private:
  std::size_t width_;
  std::vector<MPI_Request> all_;
};

}  // namespace earlybird
