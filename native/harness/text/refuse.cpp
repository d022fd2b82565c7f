// Prints the sentence that ends a kernel.
#include "harness/text/refuse.hpp"

#include <cstdio>
#include <cstdlib>

namespace earlybird {

void refuse(const std::string &sentence) {
  std::fprintf(stderr, "earlybird kernel: %s\n", sentence.c_str());
  std::exit(2);
}

}  // namespace earlybird
