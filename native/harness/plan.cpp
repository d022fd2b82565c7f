// Parses the lines of a plan and converts them to JSON.
#include "harness/plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "harness/command_line.hpp"
#include "harness/json.hpp"

namespace earlybird {

namespace {

bool is_integer(const std::string &argument) {
  if (argument.empty()) return false;
  char *end = nullptr;
  std::strtoll(argument.c_str(), &end, 10);
  return *end == '\0';
}

// Accepts only JSON numbers: no hexadecimal, no infinity, a digit on both sides of the decimal point.
bool is_number(const std::string &argument) {
  if (argument.empty() || argument.find_first_not_of("+-.0123456789eE") != std::string::npos) return false;
  char *end = nullptr;
  const double value = std::strtod(argument.c_str(), &end);
  const std::size_t first = argument[0] == '-' ? 1 : 0, point = argument.find('.');
  const auto digit_at = [&](std::size_t k) { return k < argument.size() && argument[k] >= '0' && argument[k] <= '9'; };
  const bool padded = digit_at(first) && argument[first] == '0' && digit_at(first + 1);
  return *end == '\0' && std::isfinite(value) && digit_at(first) && !padded &&
         (point == std::string::npos || digit_at(point + 1));
}

}  // namespace

Point::Point(const std::string &line) {
  std::istringstream stream(line);
  std::string argument;
  while (stream >> argument) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0) refuse("the plan contains '" + argument + "'; give key=value");
    arguments_.emplace_back(argument.substr(0, equals), argument.substr(equals + 1));
  }
}

bool Point::has(const std::string &key) const {
  for (const auto &argument : arguments_) {
    if (argument.first == key) return true;
  }
  return false;
}

std::string Point::text(const std::string &key) const {
  for (const auto &[name, value] : arguments_) {
    if (name == key) return value;
  }
  refuse("a line of the plan has no " + key);
}

long long Point::integer(const std::string &key) const {
  const std::string value = text(key);
  if (!is_integer(value)) refuse("the plan gives " + key + "=" + value + "; give an integer");
  return std::atoll(value.c_str());
}

double Point::number(const std::string &key) const {
  const std::string value = text(key);
  if (!is_number(value)) refuse("the plan gives " + key + "=" + value + "; give a number");
  return std::atof(value.c_str());
}

Point Point::without(const std::string &key) const {
  Point other = *this;
  auto &arguments = other.arguments_;
  const auto has_key = [&](const auto &argument) { return argument.first == key; };
  arguments.erase(std::remove_if(arguments.begin(), arguments.end(), has_key), arguments.end());
  return other;
}

Point Point::with(const std::string &key, const std::string &value) const {
  Point other = without(key);
  other.arguments_.emplace_back(key, value);
  return other;
}

std::string Point::config_json() const {
  JsonObject object;
  for (const auto &[name, value] : arguments_) object.add(name, is_number(value) ? value : json_text(value));
  return object.str();
}

std::vector<Point> read_plan(const std::string &path) {
  std::ifstream stream(path);
  if (!stream) refuse("cannot read the plan " + path);
  std::vector<Point> points;
  std::string line;
  while (std::getline(stream, line)) {
    if (!line.empty()) points.emplace_back(line);
  }
  return points;
}

}  // namespace earlybird
