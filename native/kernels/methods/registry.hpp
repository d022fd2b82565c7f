// The methods by name.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kernels/methods/method.hpp"

namespace earlybird {

struct Kind {
  std::function<std::unique_ptr<Method>(Transfer &)> make;
  int settling = 0;  // iterations until the method has adapted
};

// The method `name`; ends the program with a message, which names the kernel, if it does not exist or this MPI does not support
// it.
Kind find_method(const std::string &name, const std::string &kernel);

}  // namespace earlybird
