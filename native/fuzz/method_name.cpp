// The name of a collective method: refused, or split at its colon.
#include "kernels/collectives/algorithms/method_name.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "fuzz/refusing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace earlybird;
  const std::string text(data, data + size);
  try {
    const MethodName name = read_method_name(text);
    if (name.text != text || text.compare(0, name.algorithm.size(), name.algorithm) != 0) std::abort();
    if (name.is_segmented && !name.is_own()) std::abort();
  } catch (const Refused &refused) {
    if (refused.sentence.empty()) std::abort();
  }
  return 0;
}
