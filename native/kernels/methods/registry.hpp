// The methods by name.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kernels/methods/method.hpp"

namespace earlybird {

struct Kind {
  std::function<std::unique_ptr<Method>(Transfer &)> make;
  int settling = 0;  // iterations after which it no longer learns
};

// The method `name`; ends the program in a sentence when there is none or this MPI lacks what it needs.
Kind find_method(const std::string &name);

}  // namespace earlybird
