// Doubles in memory that are packed into a contiguous buffer before they are sent, and unpacked after they were received:
// contiguous, one in each cache line (strided), or at irregular distances of one cache line on average (indexed).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/messages/buffer.hpp"
#include "harness/request/request.hpp"

namespace earlybird {

enum class DataLayout { contiguous, strided, indexed };

// From `packing` of the point; ends the program with a message for another text.
DataLayout data_layout_of(const Point &point);

class PackedData {
 public:
  // `count` doubles, at least 1, which messages on `comm` carry. The datatype is freed with it.
  PackedData(MPI_Comm comm, DataLayout layout, int count);
  ~PackedData();
  PackedData(const PackedData &) = delete;
  PackedData &operator=(const PackedData &) = delete;

  // By MPI_Pack and MPI_Unpack, between the doubles and `packed`, which has packed_bytes().
  void pack(std::byte *packed) const;
  void unpack(const std::byte *packed);
  // The same by a loop over the doubles.
  void pack_by_loop(std::byte *packed) const;
  void unpack_by_loop(const std::byte *packed);

  int count() const { return count_; }
  int packed_bytes() const { return packed_bytes_; }
  // One element of it at data() is all doubles.
  MPI_Datatype type() const { return type_; }
  void *data() { return values_.data(); }
  double &value(int k) { return values()[indices_[static_cast<std::size_t>(k)]]; }
  double value(int k) const { return values()[indices_[static_cast<std::size_t>(k)]]; }

  // Writes the contents of `key`; see harness/messages/data_check.hpp.
  void write(std::uint64_t key);
  // Whether each double has the contents of `key`.
  bool holds(std::uint64_t key) const;

 private:
  double *values() { return reinterpret_cast<double *>(values_.data()); }
  const double *values() const { return reinterpret_cast<const double *>(values_.data()); }

  const MPI_Comm comm_;
  const DataLayout layout_;
  const int count_;
  const std::vector<int> indices_;
  Buffer values_;
  MPI_Datatype type_;
  int packed_bytes_ = 0;
};

// Double `k` of the contents of `key`.
double content_double(std::uint64_t key, int k);

}  // namespace earlybird
