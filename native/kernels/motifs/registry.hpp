// The styles by name.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kernels/motifs/style.hpp"

namespace earlybird {

struct StyleKind {
  std::function<std::unique_ptr<Style>(Team &, const Edges &, int num_threads)> make;
  int settling = 0;               // starts of a request until the style has adapted
  bool needs_multiple = false;    // MPI_THREAD_MULTIPLE, also with one thread
};

// Whether the style `name` exists and needs MPI_THREAD_MULTIPLE.
bool needs_thread_multiple(const std::string &name);

// The style `name`; ends the program with a message if it does not exist or this MPI does not support it.
StyleKind find_style(const std::string &name);

}  // namespace earlybird
