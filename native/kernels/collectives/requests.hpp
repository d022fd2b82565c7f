// Requests of the segments under way: a row of them for each, used again when the segment is through.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace earlybird {

// How many segments of one sender and receiver are under way at a time: enough that the next is always there while one
// is handed on, few enough that queues of messages stay short, which take longer to search the longer they are.
constexpr std::size_t segments_under_method = 8;

class Requests {
 public:
  // `width` of them for each of `num_segments`.
  Requests(std::size_t width, std::size_t num_segments)
      : width_(width),
        rows_(std::min(num_segments, segments_under_method)),
        all_(width_ * rows_, MPI_REQUEST_NULL) {}

  // The requests of segment k, of which there are width().
  MPI_Request *of(std::size_t k) { return all_.data() + k % rows_ * width_; }
  int width() const { return static_cast<int>(width_); }

  MPI_Request *all() { return all_.data(); }
  int count() const { return static_cast<int>(all_.size()); }

 private:
  std::size_t width_, rows_;
  std::vector<MPI_Request> all_;
};

}  // namespace earlybird
