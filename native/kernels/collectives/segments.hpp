// A buffer cut into segments, each a message of its own.
#pragma once

#include <algorithm>
#include <cstddef>

namespace earlybird {

class Segments {
 public:
  // Segments of `segment_bytes`, the last one shorter where they do not divide the size; one segment where that is 0 or
  // no less than the size. An empty buffer is one empty segment: its message still tells that it is there.
  Segments(std::size_t size_bytes, std::size_t segment_bytes)
      : size_bytes_(size_bytes),
        segment_bytes_(segment_bytes == 0 ? size_bytes : std::min(segment_bytes, size_bytes)) {}

  std::size_t size_bytes() const { return size_bytes_; }
  std::size_t count() const { return segment_bytes_ == 0 ? 1 : (size_bytes_ + segment_bytes_ - 1) / segment_bytes_; }
  std::size_t offset(std::size_t k) const { return k * segment_bytes_; }
  int bytes(std::size_t k) const { return static_cast<int>(std::min(segment_bytes_, size_bytes_ - offset(k))); }

 private:
  std::size_t size_bytes_, segment_bytes_;
};

}  // namespace earlybird
