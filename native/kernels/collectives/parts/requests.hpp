// Requests of the segments in flight: a row per segment, reused when the segment is complete.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace earlybird {

// Maximum number of segments in flight between a sender and a receiver: enough that the next segment has arrived while one
// is forwarded, few enough that message queues stay short and fast to search.
constexpr std::size_t max_segments_in_flight = 8;

class Requests {
 public:
  // `width` requests for each of `num_segments` segments.
  Requests(std::size_t width, std::size_t num_segments)
      : width_(width), rows_(std::min(num_segments, max_segments_in_flight)), all_(width_ * rows_, MPI_REQUEST_NULL) {}

  // The width() requests of segment k.
  MPI_Request *of(std::size_t k) { return all_.data() + k % rows_ * width_; }
  int width() const { return static_cast<int>(width_); }

  MPI_Request *all() { return all_.data(); }
  int count() const { return static_cast<int>(all_.size()); }

 private:
  std::size_t width_, rows_;
  std::vector<MPI_Request> all_;
};

}  // namespace earlybird
