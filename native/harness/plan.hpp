// The plan: one point per line, given as key=value arguments.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace earlybird {

class Point {
 public:
  explicit Point(const std::string &line);

  bool has(const std::string &key) const;

  // The integer value of `key`; ends the program with a message if it is absent or not an integer.
  long long integer(const std::string &key) const;
  // The finite number value of `key`.
  double number(const std::string &key) const;
  std::string text(const std::string &key) const;

  // A copy of the point with `key` set to `value`, or without `key`.
  Point with(const std::string &key, const std::string &value) const;
  Point without(const std::string &key) const;

  // The arguments as a JSON object, with numbers as JSON numbers: the `config` of a sample.
  std::string config_json() const;

 private:
  std::vector<std::pair<std::string, std::string>> arguments_;
};

std::vector<Point> read_plan(const std::string &path);

}  // namespace earlybird
