// The name of a method: an algorithm and, after a colon, the segment size in bytes.
#pragma once

#include <cstddef>
#include <string>

namespace earlybird {

struct MethodName {
  std::string text;           // as given: `own-pipeline:8192`
  std::string algorithm;      // `own-pipeline`
  bool is_segmented = false;  // whether a segment size was given; 0 means one segment
  std::size_t segment_bytes = 0;

  // Whether the algorithm is one of ours, on point-to-point calls, and not the MPI's.
  bool is_own() const { return algorithm.compare(0, 4, "own-") == 0; }

  // Whether it is the MPI's persistent call: `persistent`, or `persistent-NAME` if control variables or environment select
  // its algorithm.
  bool is_persistent() const { return algorithm == "persistent" || algorithm.compare(0, 11, "persistent-") == 0; }
};

// Ends the program with a message if the text after the colon of an algorithm of ours is not a number of bytes. The names
// of the MPI's algorithms are arbitrary: control variables and environment select these algorithms.
MethodName read_method_name(const std::string &text);

}  // namespace earlybird
