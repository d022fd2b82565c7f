// Escapes text and prints numbers with nine significant digits.
#include "harness/text/json.hpp"

#include <cstdio>

namespace earlybird {

std::string json_text(const std::string &text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (code < 0x20 || code == 0x7f) {  // UTF-8 bytes are kept
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      result += escape;
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string json_number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}

std::string json_bool(bool value) { return value ? "true" : "false"; }

std::string json_array(const std::vector<std::string> &items) {
  std::string result = "[";
  for (const std::string &item : items) {
    if (result.size() > 1) result += ", ";
    result += item;
  }
  return result + "]";
}

std::string json_array(const std::vector<double> &values) {
  std::vector<std::string> items;
  items.reserve(values.size());
  for (double value : values) items.push_back(json_number(value));
  return json_array(items);
}

std::string json_array(const std::vector<int> &values) {
  std::vector<std::string> items;
  items.reserve(values.size());
  for (int value : values) items.push_back(std::to_string(value));
  return json_array(items);
}

std::string json_rows(const std::vector<double> &values, std::size_t width, std::size_t first, std::size_t count) {
  std::vector<std::string> rows;
  for (std::size_t row = first; row < values.size(); row += width) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row);
    rows.push_back(json_array(std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(count))));
  }
  return json_array(rows);
}

std::string json_rows(const std::vector<double> &values, std::size_t width) { return json_rows(values, width, 0, width); }

JsonObject &JsonObject::add(const std::string &key, const std::string &json) {
  if (!members_.empty()) members_ += ", ";
  members_ += json_text(key) + ": " + json;
  return *this;
}

}  // namespace earlybird
