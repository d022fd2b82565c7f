// The contributions to reductions: their contents are such that every result is known exactly without adding.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace earlybird {

// Sums of doubles if the size is a multiple of their size, else exclusive ors of bytes. Every rank contributes the same
// number of bytes; they differ by element and iteration.
//
// Doubles are integers so small that sums are exact in any order. Element k of rank r is a_k + w_r * b_k, so the sum over
// all ranks is P * a_k + b_k * (sum of w_r): a missing or repeated contribution is detected. With bytes, element k of rank r
// is m_k masked with w_r; the result is m_k masked with the exclusive or of all w_r.
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

  // Whether `data` is the contribution of rank 0 plus `times` times the contribution of rank 1.
  bool hold_repeated(const std::byte *data, long long times, int iteration) const;

 private:
  // Whether `data` is the sum of `share` contributions with the total weight `weight`.
  bool hold_total(const std::byte *data, double share, double weight, std::uint64_t mask, int iteration) const;

  std::size_t size_bytes_;
};

}  // namespace earlybird
