// The ways by name.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kernels/ways/way.hpp"

namespace earlybird {

struct Kind {
  std::function<std::unique_ptr<Way>(Transfer &)> make;
  int settling = 0;  // iterations after which it no longer learns
};

// The way `name`; ends the program in a sentence when there is none or this MPI lacks what it needs.
Kind find_way(const std::string &name);

}  // namespace earlybird
