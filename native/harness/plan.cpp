// Reads plan lines and echoes them as JSON.
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

bool is_integer(const std::string &word) {
  if (word.empty()) return false;
  char *end = nullptr;
  std::strtoll(word.c_str(), &end, 10);
  return *end == '\0';
}

// Only what JSON takes for a number too: no hexadecimal, no infinity, a digit on both sides of the point.
bool is_number(const std::string &word) {
  if (word.empty() || word.find_first_not_of("+-.0123456789eE") != std::string::npos) return false;
  char *end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  const std::size_t first = word[0] == '-' ? 1 : 0, point = word.find('.');
  const auto digit_at = [&](std::size_t k) { return k < word.size() && word[k] >= '0' && word[k] <= '9'; };
  const bool padded = digit_at(first) && word[first] == '0' && digit_at(first + 1);
  return *end == '\0' && std::isfinite(value) && digit_at(first) && !padded &&
         (point == std::string::npos || digit_at(point + 1));
}

}  // namespace

Point::Point(const std::string &line) {
  std::istringstream stream(line);
  std::string word;
  while (stream >> word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) refuse("the plan has the word '" + word + "'; words are key=value");
    words_.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
}

bool Point::has(const std::string &key) const {
  for (const auto &word : words_) {
    if (word.first == key) return true;
  }
  return false;
}

std::string Point::text(const std::string &key) const {
  for (const auto &[name, value] : words_) {
    if (name == key) return value;
  }
  refuse("a plan line lacks " + key);
}

long long Point::integer(const std::string &key) const {
  const std::string value = text(key);
  if (!is_integer(value)) refuse("the plan gives " + key + "=" + value + "; give a whole number");
  return std::atoll(value.c_str());
}

double Point::number(const std::string &key) const {
  const std::string value = text(key);
  if (!is_number(value)) refuse("the plan gives " + key + "=" + value + "; give a number");
  return std::atof(value.c_str());
}

Point Point::without(const std::string &key) const {
  Point other = *this;
  auto &words = other.words_;
  words.erase(std::remove_if(words.begin(), words.end(), [&](const auto &word) { return word.first == key; }),
              words.end());
  return other;
}

Point Point::with(const std::string &key, const std::string &value) const {
  Point other = without(key);
  other.words_.emplace_back(key, value);
  return other;
}

std::string Point::config_json() const {
  JsonObject object;
  for (const auto &[name, value] : words_) object.add(name, is_number(value) ? value : json_text(value));
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
