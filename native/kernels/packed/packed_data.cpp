// Gathers and scatters doubles of a layout, by the MPI and by loops.
#include "kernels/packed/packed_data.hpp"

#include <cstring>
#include <map>
#include <string>

#include "harness/messages/data_check.hpp"
#include "harness/text/names.hpp"
#include "harness/text/refuse.hpp"

namespace earlybird {

namespace {

constexpr int distance = 8;  // doubles from one to the next on average: those of a cache line

// The index of each double: ascending, and within its own `distance` doubles if they are irregular.
std::vector<int> indices_of(DataLayout layout, int count) {
  std::vector<int> indices;
  for (int k = 0; k < count; ++k) {
    const auto shift = static_cast<int>(content_word(1, static_cast<std::size_t>(k)) >> 61);  // 0 to 7
    indices.push_back(layout == DataLayout::contiguous ? k : k * distance + (layout == DataLayout::indexed ? shift : 0));
  }
  return indices;
}

MPI_Datatype make_type(DataLayout layout, const std::vector<int> &indices) {
  const int count = static_cast<int>(indices.size());
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (layout == DataLayout::contiguous) MPI_Type_contiguous(count, MPI_DOUBLE, &type);
  if (layout == DataLayout::strided) MPI_Type_vector(count, 1, distance, MPI_DOUBLE, &type);
  if (layout == DataLayout::indexed) MPI_Type_create_indexed_block(count, 1, indices.data(), MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

}  // namespace

DataLayout data_layout_of(const Point &point) {
  static const std::map<std::string, DataLayout> known = {
      {"contiguous", DataLayout::contiguous}, {"strided", DataLayout::strided}, {"indexed", DataLayout::indexed}};
  const auto found = known.find(point.text("packing"));
  if (found == known.end()) refuse("the request gives packing=" + point.text("packing") + "; give one of " + names_of(known));
  return found->second;
}

double content_double(std::uint64_t key, int k) {
  return static_cast<double>(content_word(key, static_cast<std::size_t>(k)) >> 12);  // exact in 53 bits
}

PackedData::PackedData(MPI_Comm comm, DataLayout layout, int count)
    : comm_(comm),
      layout_(layout),
      count_(count),
      indices_(indices_of(layout, count)),
      values_(sizeof(double) * static_cast<std::size_t>(count) * (layout == DataLayout::contiguous ? 1 : distance)),
      type_(make_type(layout, indices_)) {
  MPI_Pack_size(1, type_, comm, &packed_bytes_);
}

PackedData::~PackedData() { MPI_Type_free(&type_); }

void PackedData::pack(std::byte *packed) const {
  int position = 0;
  MPI_Pack(values_.data(), 1, type_, packed, packed_bytes_, &position, comm_);
}

void PackedData::unpack(const std::byte *packed) {
  int position = 0;
  MPI_Unpack(packed, packed_bytes_, &position, values_.data(), 1, type_, comm_);
}

void PackedData::pack_by_loop(std::byte *packed) const {
  const double *const from = values();
  auto *const to = reinterpret_cast<double *>(packed);
  switch (layout_) {
    case DataLayout::contiguous: std::memcpy(to, from, sizeof(double) * static_cast<std::size_t>(count_)); break;
    case DataLayout::strided:
      for (int k = 0; k < count_; ++k) to[k] = from[k * distance];
      break;
    case DataLayout::indexed:
      for (int k = 0; k < count_; ++k) to[k] = from[indices_[static_cast<std::size_t>(k)]];
      break;
  }
}

void PackedData::unpack_by_loop(const std::byte *packed) {
  const auto *const from = reinterpret_cast<const double *>(packed);
  double *const to = values();
  switch (layout_) {
    case DataLayout::contiguous: std::memcpy(to, from, sizeof(double) * static_cast<std::size_t>(count_)); break;
    case DataLayout::strided:
      for (int k = 0; k < count_; ++k) to[k * distance] = from[k];
      break;
    case DataLayout::indexed:
      for (int k = 0; k < count_; ++k) to[indices_[static_cast<std::size_t>(k)]] = from[k];
      break;
  }
}

void PackedData::write(std::uint64_t key) {
  for (int k = 0; k < count_; ++k) value(k) = content_double(key, k);
}

bool PackedData::holds(std::uint64_t key) const {
  for (int k = 0; k < count_; ++k) {
    if (value(k) != content_double(key, k)) return false;
  }
  return true;
}

}  // namespace earlybird
