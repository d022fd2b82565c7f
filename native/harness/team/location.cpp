// Writes and reads the text of a location.
#include "harness/team/location.hpp"

#include <sstream>

#include "harness/text/refuse.hpp"

namespace earlybird {

namespace {

bool read_cpu(const std::string &item, Cpu &cpu) {
  std::istringstream stream(item);
  char first = 0, second = 0;
  return stream >> cpu.number >> first >> cpu.socket >> second >> cpu.core && first == ':' && second == ':' &&
         stream.peek() == std::istringstream::traits_type::eof();
}

}  // namespace

std::string to_text(const Location &location) {
  std::ostringstream text;
  text << location.host;
  for (const std::vector<Cpu> &cpus : location.threads) {
    text << " /";
    for (const Cpu &cpu : cpus) text << ' ' << cpu.number << ':' << cpu.socket << ':' << cpu.core;
  }
  return text.str();
}

Location read_location(const std::string &text) {
  std::istringstream stream(text);
  Location location;
  stream >> location.host;
  for (std::string item; stream >> item;) {
    Cpu cpu{};
    if (item == "/") location.threads.emplace_back();
    else if (!location.threads.empty() && read_cpu(item, cpu)) location.threads.back().push_back(cpu);
    else refuse("a rank reports the location '" + text + "'; the name of its host must have no blanks");
  }
  return location;
}

}  // namespace earlybird
