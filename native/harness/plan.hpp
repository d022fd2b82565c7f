// The plan: one point per line of key=value words.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace earlybird {

class Point {
 public:
  explicit Point(const std::string &line);

  bool has(const std::string &key) const;

  // The whole number under `key`; ends the program with a sentence when it is absent or not a number.
  long long integer(const std::string &key) const;
  // The finite number under `key`, whole or not.
  double number(const std::string &key) const;
  std::string text(const std::string &key) const;

  // The point with `key` saying `value`, whatever it said before, or nothing at all.
  Point with(const std::string &key, const std::string &value) const;
  Point without(const std::string &key) const;

  // The words as a JSON object, numbers as numbers: the `config` of a sample.
  std::string config_json() const;

 private:
  std::vector<std::pair<std::string, std::string>> words_;
};

std::vector<Point> read_plan(const std::string &path);

}  // namespace earlybird
