// Splits a method name at the colon.
#include "kernels/collectives/algorithms/method_name.hpp"

#include <optional>

#include "harness/text/numbers.hpp"
#include "harness/text/refuse.hpp"

namespace earlybird {

MethodName read_method_name(const std::string &text) {
  const std::size_t colon = text.find(':');
  MethodName name;
  name.text = text;
  name.algorithm = text.substr(0, colon);
  if (!name.is_own() || colon == std::string::npos) return name;
  const std::string bytes = text.substr(colon + 1);
  const std::optional<long long> segment_bytes = read_integer(bytes);
  if (!segment_bytes || *segment_bytes < 0)
    refuse("the method " + text + " has an invalid segment size; give bytes after the colon, such as " + name.algorithm +
           ":8192; 0 means one segment");
  name.is_segmented = true;
  name.segment_bytes = static_cast<std::size_t>(*segment_bytes);
  return name;
}

}  // namespace earlybird
