// A minimal JSON writer for one object per line.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace earlybird {

std::string json_text(const std::string &text);
std::string json_number(double value);
std::string json_bool(bool value);
std::string json_array(const std::vector<std::string> &items);
std::string json_array(const std::vector<double> &values);
std::string json_array(const std::vector<int> &values);
// `count` values from number `first` on, of each row of `width` values.
std::string json_rows(const std::vector<double> &values, std::size_t width, std::size_t first, std::size_t count);
// Whole rows of `width` values.
std::string json_rows(const std::vector<double> &values, std::size_t width);

// Collects members in order: JsonObject().add("a", "1").str() is {"a": 1}.
class JsonObject {
 public:
  JsonObject &add(const std::string &key, const std::string &json);
  std::string str() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace earlybird
