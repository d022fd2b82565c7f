// Names in sentences.
#pragma once

#include <map>
#include <string>

namespace earlybird {

// The keys of `entries`: "a, b, c".
template <class Value>
std::string names_of(const std::map<std::string, Value> &entries) {
  std::string names;
  for (const auto &entry : entries) names += (names.empty() ? "" : ", ") + entry.first;
  return names;
}

}  // namespace earlybird
