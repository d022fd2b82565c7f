// Page-aligned message memory, as in the OSU and Intel benchmarks: copying from memory that is not aligned to a cache
// line takes up to 10 % longer.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace earlybird {

class Buffer {
 public:
  // Writes zeros, so that no timed region touches a page for the first time.
  explicit Buffer(std::size_t size_bytes) {
    const std::size_t whole_pages = (size_bytes / page_bytes + 1) * page_bytes;
    data_.reset(static_cast<std::byte *>(std::aligned_alloc(page_bytes, whole_pages)));
    if (!data_) throw std::bad_alloc();
    std::memset(data_.get(), 0, whole_pages);
  }

  std::byte *data() { return data_.get(); }
  const std::byte *data() const { return data_.get(); }

 private:
  static constexpr std::size_t page_bytes = 4096;
  struct Free {
    void operator()(std::byte *data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace earlybird
