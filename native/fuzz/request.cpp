// The request of a kernel: it is refused with a sentence, or its numbers are in range and its points are echoed as JSON.
#include "harness/request/request.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "fuzz/refusing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace earlybird;
  std::istringstream stream(std::string(data, data + size));
  try {
    const Request request = read_request(stream, "request");
    if (request.threads < 1 || request.out.empty()) std::abort();
    for (const Point &point : request.points) {
      const std::string json = point.with("added", 1LL).without("size_bytes").config_json();
      if (json.front() != '{' || json.back() != '}' || json.find('\n') != std::string::npos) std::abort();
      try {
        point.integer("size_bytes");
        if (!std::isfinite(point.number("gamma_s_per_byte"))) std::abort();
      } catch (const Refused &) {
      }
    }
  } catch (const Refused &refused) {
    if (refused.sentence.empty()) std::abort();
  }
  return 0;
}
