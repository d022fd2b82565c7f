// Splits lines into words and words at the equals sign.
#include "harness/settings.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "harness/command_line.hpp"

namespace earlybird {

std::map<std::string, MethodSettings> read_settings(const std::string &path, const std::vector<std::string> &methods) {
  std::ifstream stream(path);
  if (!stream) refuse("cannot read the settings " + path);
  std::map<std::string, MethodSettings> settings;
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string method;
    if (!(words >> method)) continue;
    if (std::find(methods.begin(), methods.end(), method) == methods.end())
      refuse("the settings name the method " + method + ", which --methods does not");
    MethodSettings &own = settings[method];
    Assignments *assignments = &own.at_birth;
    bool first = true;
    for (std::string word; words >> word; first = false) {
      if (first && word == "@call") {
        assignments = &own.at_call;
        continue;
      }
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos || equals == 0)
        refuse("the settings of the method " + method + " have the word '" + word + "'; words are NAME=VALUE");
      (*assignments)[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  return settings;
}

}  // namespace earlybird
