// What reductions add: contents made so that every result is known without adding, to the bit.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace earlybird {

// Sums of doubles where the size holds whole ones, else exclusive ors of bytes. Every rank contributes as many bytes,
// others at each place and in each iteration.
//
// Doubles are whole numbers so small that sums are exact in whatever order they are added. At place k rank r has
// a_k + w_r * b_k, so the sum of all is P * a_k + b_k * (sum of w_r): a rank left out or counted twice shows. Of bytes
// rank r has those bits of m_k that w_r chooses; together they are those that the exclusive or of all w_r chooses.
class Summands {
 public:
  explicit Summands(std::size_t size_bytes) : size_bytes_(size_bytes) {}

  bool of_doubles() const { return size_bytes_ % sizeof(double) == 0; }
  const char *type_name() const { return of_doubles() ? "double" : "byte"; }
  MPI_Datatype type() const { return of_doubles() ? MPI_DOUBLE : MPI_BYTE; }
  MPI_Op op() const { return of_doubles() ? MPI_SUM : MPI_BXOR; }
  std::size_t element_bytes() const { return of_doubles() ? sizeof(double) : 1; }
  int count(std::size_t bytes) const { return static_cast<int>(bytes / element_bytes()); }

  // Writes the contribution of `rank`.
  void fill(std::byte *data, int rank, int iteration) const;

  // Whether `data` is the result of all contributions.
  bool hold(const std::byte *data, int num_ranks, int iteration) const;

  // Whether `data` is the contribution of rank 0 to which that of rank 1 was added `times` times.
  bool hold_repeated(const std::byte *data, long long times, int iteration) const;

 private:
  // What `share` summands of some weights, together `weight`, make at all places, written or compared.
  bool hold_total(const std::byte *data, double share, double weight, std::uint64_t chosen, int iteration) const;

  std::size_t size_bytes_;
};

}  // namespace earlybird
