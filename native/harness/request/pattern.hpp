// The pattern: int64 triples src, dst, bytes in the machine's byte order.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <string>

namespace earlybird {

struct PatternMessage {
  std::int64_t number;  // its row in the pattern
  int source, destination;
  int size_bytes;
};

// Calls `take` for each message in order. Ends the program with a message if the pattern ends within a triple, names a rank
// outside of 0..num_ranks-1, or has a size that one MPI call cannot send.
void read_pattern(const std::string &path, int num_ranks, const std::function<void(const PatternMessage &)> &take);
void read_pattern(std::istream &stream, int num_ranks, const std::function<void(const PatternMessage &)> &take);

}  // namespace earlybird
