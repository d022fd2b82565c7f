// Reads triple after triple, because a rank keeps only the messages of its own.
#include "harness/request/pattern.hpp"

#include <fstream>
#include <limits>

#include "harness/text/refuse.hpp"

namespace earlybird {

namespace {

std::string name_of(std::int64_t number) { return "message " + std::to_string(number) + " of the pattern"; }

}  // namespace

void read_pattern(std::istream &stream, int num_ranks, const std::function<void(const PatternMessage &)> &take) {
  const auto has_rank = [&](std::int64_t rank) { return rank >= 0 && rank < num_ranks; };
  std::int64_t triple[3], number = 0;
  for (; stream.read(reinterpret_cast<char *>(triple), sizeof triple); ++number) {
    if (!has_rank(triple[0]) || !has_rank(triple[1]))
      refuse(name_of(number) + " goes from rank " + std::to_string(triple[0]) + " to rank " + std::to_string(triple[1]) +
             "; start more than " + std::to_string(num_ranks) + " ranks or give ranks from 0");
    if (triple[2] < 0 || triple[2] > std::numeric_limits<int>::max())
      refuse(name_of(number) + " has " + std::to_string(triple[2]) + " bytes; give 0 to 2^31 - 1");
    take({number, static_cast<int>(triple[0]), static_cast<int>(triple[1]), static_cast<int>(triple[2])});
  }
  if (stream.gcount() != 0) refuse(name_of(number) + " is cut off; give three int64 for each");
}

void read_pattern(const std::string &path, int num_ranks, const std::function<void(const PatternMessage &)> &take) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse("cannot read the pattern " + path);
  read_pattern(file, num_ranks, take);
}

}  // namespace earlybird
