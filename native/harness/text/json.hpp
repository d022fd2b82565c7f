// A minimal JSON writer for one object per line.
#pragma once

#include <string>
#include <vector>

namespace earlybird {

std::string json_text(const std::string &text);
std::string json_number(double value);
std::string json_bool(bool value);
std::string json_array(const std::vector<std::string> &items);
std::string json_array(const std::vector<double> &values);
std::string json_array(const std::vector<int> &values);

// Collects members in order: JsonObject().add("a", "1").str() is {"a": 1}.
class JsonObject {
 public:
  JsonObject &add(const std::string &key, const std::string &json);
  std::string str() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace earlybird
