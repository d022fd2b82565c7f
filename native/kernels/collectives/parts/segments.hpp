// A buffer divided into segments, each sent as a separate message.
#pragma once

#include <algorithm>
#include <cstddef>

namespace earlybird {

class Segments {
 public:
  // Segments of `segment_bytes`; the last one is shorter if they do not divide the size. One segment if `segment_bytes` is 0
  // or at least the size. An empty buffer is one empty segment, which is still sent.
  Segments(std::size_t size_bytes, std::size_t segment_bytes)
      : size_bytes_(size_bytes), segment_bytes_(segment_bytes == 0 ? size_bytes : std::min(segment_bytes, size_bytes)) {}

  std::size_t size_bytes() const { return size_bytes_; }
  std::size_t count() const { return segment_bytes_ == 0 ? 1 : (size_bytes_ + segment_bytes_ - 1) / segment_bytes_; }
  std::size_t offset(std::size_t k) const { return k * segment_bytes_; }
  int bytes(std::size_t k) const { return static_cast<int>(std::min(segment_bytes_, size_bytes_ - offset(k))); }

 private:
  std::size_t size_bytes_, segment_bytes_;
};

}  // namespace earlybird
