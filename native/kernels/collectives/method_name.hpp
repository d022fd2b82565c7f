// The name of a method: an algorithm and, after a colon, the bytes of a segment.
#pragma once

#include <cstddef>
#include <string>

namespace earlybird {

struct MethodName {
  std::string text;           // as given: `own-pipeline:8192`
  std::string algorithm;      // `own-pipeline`
  bool is_segmented = false;  // whether bytes were given; 0 of them is one segment
  std::size_t segment_bytes = 0;

  // Whether the algorithm is one of ours, on point-to-point calls, not the MPI's.
  bool is_own() const { return algorithm.compare(0, 4, "own-") == 0; }
};

// Ends the program with a sentence where an algorithm of ours has anything but a number of bytes behind its colon. What
// the MPI's are called is the caller's affair: settings and environment force them.
MethodName read_method_name(const std::string &text);

}  // namespace earlybird
