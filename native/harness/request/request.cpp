// Checks every key of a request, so that no later code meets an invalid option.
#include "harness/request/request.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#if !__has_include(<nlohmann/json.hpp>)
#error "nlohmann/json.hpp is missing: install nlohmann-json with pip, or set NLOHMANN_JSON_INCLUDE"
#endif
#include <nlohmann/json.hpp>

#include "harness/text/json.hpp"
#include "harness/text/refuse.hpp"

namespace earlybird {

namespace {

using Json = nlohmann::ordered_json;  // the config of a sample has the order of the point

// A larger number is a typing error: no socket has so many cores.
constexpr int max_threads = 1024, max_ranks = 1 << 30;
constexpr int max_int = std::numeric_limits<int>::max();

// A copy of a JSON object, from which each known key is taken; whatever is left is unknown.
class Keys {
 public:
  Keys(const Json &object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) refuse(where_ + " is " + object.dump() + "; give a JSON object");
  }

  // The value of `key`, or null if it is absent.
  Json take(const std::string &key) {
    const auto found = object_.find(key);
    if (found == object_.end()) return nullptr;
    Json value = *found;
    object_.erase(found);
    return value;
  }

  void take(const std::string &key, std::string &target) {
    const Json value = take(key);
    if (value.is_null()) return;
    if (!value.is_string() || value.get<std::string>().empty()) refuse_value(key, value, "text");
    target = value.get<std::string>();
  }

  void take(const std::string &key, double &target) {
    const Json value = take(key);
    if (value.is_null()) return;
    if (!value.is_number() || !(value.get<double>() > 0)) refuse_value(key, value, "a number above 0");
    target = value.get<double>();
  }

  void take(const std::string &key, int &target, int low, int high) {
    const Json value = take(key);
    if (value.is_null()) return;
    if (!value.is_number_integer() || value < low || value > high)
      refuse_value(key, value, "an integer from " + std::to_string(low) + " to " + std::to_string(high));
    target = value.get<int>();
  }

  void end() const {
    if (!object_.empty()) refuse(where_ + " has the unknown key " + object_.begin().key() + "; leave it out");
  }

  [[noreturn]] void refuse_value(const std::string &key, const Json &value, const std::string &allowed) const {
    refuse(where_ + " has " + key + "=" + value.dump() + "; give " + allowed);
  }

 private:
  Json object_;
  const std::string where_;
};

std::vector<std::string> methods_of(Keys &options) {
  const Json value = options.take("methods");
  std::vector<std::string> methods;
  if (value.is_null()) return methods;
  const auto is_text = [](const Json &one) { return one.is_string(); };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_text))
    options.refuse_value("methods", value, "a list of texts");
  return value.get<std::vector<std::string>>();
}

Assignments assignments_of(Keys &of_method, const std::string &kind) {
  const Json value = of_method.take(kind);
  Assignments assignments;
  if (value.is_null()) return assignments;
  const auto is_text = [](const Json &one) { return one.is_string(); };
  if (!value.is_object() || !std::all_of(value.begin(), value.end(), is_text))
    of_method.refuse_value(kind, value, "a JSON object of texts");
  for (const auto &[name, text] : value.items()) assignments[name] = text.get<std::string>();
  return assignments;
}

std::map<std::string, MethodOptions> control_variables_of(Keys &options, const std::vector<std::string> &methods) {
  std::map<std::string, MethodOptions> found;
  const Json value = options.take("control_variables");
  if (value.is_null()) return found;
  if (!value.is_object()) options.refuse_value("control_variables", value, "a JSON object");
  for (const auto &[method, variables] : value.items()) {
    if (std::find(methods.begin(), methods.end(), method) == methods.end())
      refuse("control_variables of the request has the method " + method + ", which is not in methods");
    Keys keys(variables, "control_variables." + method + " of the request");
    found[method] = {assignments_of(keys, "communicator"), assignments_of(keys, "call")};
    keys.end();
  }
  return found;
}

Request options_of(const Json &value) {
  Keys options(value, "options of the request");
  Request request;
  options.take("out", request.out);
  options.take("pattern", request.pattern);
  request.methods = methods_of(options);
  request.control_variables = control_variables_of(options, request.methods);
  options.take("ranks", request.ranks, 0, max_ranks);
  options.take("threads", request.threads, 1, max_threads);
  options.take("seed", request.seed, 0, max_int);
  std::string over_ranks = "last";
  options.take("over_ranks", over_ranks);
  if (over_ranks != "last" && over_ranks != "mean") options.refuse_value("over_ranks", over_ranks, "last or mean");
  request.mean_over_ranks = over_ranks == "mean";
  StopRules &rules = request.rules;
  options.take("mode", rules.mode);
  if (rules.mode != "median" && rules.mode != "paper") options.refuse_value("mode", rules.mode, "median or paper");
  options.take("target", rules.target);
  options.take("budget_s", rules.budget_s);
  options.take("most_s", rules.most_s);
  options.take("min_iterations", rules.min_iterations, 1, max_int);
  options.take("min_cold_iterations", rules.min_cold_iterations, 1, max_int);
  options.take("paper_iterations", rules.paper_iterations, 1, max_int);
  options.take("paper_retries", rules.paper_retries, 0, max_int);
  options.take("t_quantile", rules.t_quantile);
  options.end();
  if (request.out.empty()) refuse("options of the request has no out; give the file for the samples");
  return request;
}

Point point_of(const Json &value, const std::string &where) {
  if (!value.is_object()) refuse(where + " of the request is " + value.dump() + "; give a JSON object");
  Point point;
  for (const auto &[key, item] : value.items()) {
    const bool overflows = item.is_number_unsigned() && item > std::numeric_limits<long long>::max();
    if (item.is_number_integer() && !overflows) point = point.with(key, item.get<long long>());
    else if (item.is_number_float()) point = point.with(key, item.get<double>());
    else if (item.is_string()) point = point.with(key, item.get<std::string>());
    else refuse(where + " of the request has " + key + "=" + item.dump() + "; give a number or text");
  }
  return point;
}

std::string json_of(const Point::Value &value) {
  return std::visit([](const auto &one) { return Json(one).dump(); }, value);
}

}  // namespace

const Point::Value &Point::value(const std::string &key) const {
  for (const auto &[name, value] : values_) {
    if (name == key) return value;
  }
  refuse("a point of the request has no " + key);
}

bool Point::has(const std::string &key) const {
  return std::any_of(values_.begin(), values_.end(), [&](const auto &entry) { return entry.first == key; });
}

std::string Point::text(const std::string &key) const {
  const Value &found = value(key);
  const std::string *text = std::get_if<std::string>(&found);
  return text != nullptr ? *text : json_of(found);
}

long long Point::integer(const std::string &key) const {
  const long long *found = std::get_if<long long>(&value(key));
  if (found == nullptr) refuse("the request gives " + key + "=" + text(key) + "; give an integer");
  return *found;
}

int Point::integer(const std::string &key, int low, int high) const {
  const long long value = integer(key);
  if (value < low || value > high)
    refuse("the request gives " + key + "=" + text(key) + "; give " + std::to_string(low) + " to " + std::to_string(high));
  return static_cast<int>(value);
}

double Point::number(const std::string &key) const {
  const Value &found = value(key);
  if (const long long *integer = std::get_if<long long>(&found)) return static_cast<double>(*integer);
  const double *number = std::get_if<double>(&found);
  if (number == nullptr) refuse("the request gives " + key + "=" + text(key) + "; give a number");
  return *number;
}

double Point::not_negative(const std::string &key) const {
  const double value_of_key = number(key);
  if (!(value_of_key >= 0)) refuse("the request gives " + key + "=" + text(key) + "; give 0 or more");
  return value_of_key;
}

Point Point::without(const std::string &key) const {
  Point other = *this;
  auto &values = other.values_;
  const auto has_key = [&](const auto &entry) { return entry.first == key; };
  values.erase(std::remove_if(values.begin(), values.end(), has_key), values.end());
  return other;
}

Point Point::with(const std::string &key, Value value) const {
  Point other = without(key);
  other.values_.emplace_back(key, std::move(value));
  return other;
}

std::string Point::config_json() const {
  JsonObject object;
  for (const auto &[key, value] : values_) object.add(key, json_of(value));
  return object.str();
}

bool varies_contents(const Point &point) {
  if (!point.has("buffers")) return true;
  const std::string buffers = point.text("buffers");
  if (buffers != "vary" && buffers != "reuse") refuse("the request gives buffers=" + buffers + "; give vary or reuse");
  return buffers == "vary";
}

Request read_request(int argc, char **argv) {
  if (argc != 2) refuse("give one argument, the file with the request");
  const std::string path = argv[1];
  std::ifstream stream(path);
  if (!stream) refuse("cannot read the request " + path);
  return read_request(stream, path);
}

Request read_request(std::istream &stream, const std::string &path) {
  try {
    Keys keys(Json::parse(stream), "the request");
    Request request = options_of(keys.take("options"));
    const Json points = keys.take("points");
    keys.end();
    if (!points.is_array()) keys.refuse_value("points", points, "a list of points");
    for (const Json &point : points)
      request.points.push_back(point_of(point, "points[" + std::to_string(request.points.size()) + "]"));
    return request;
  } catch (const Json::exception &error) {
    const std::string message = error.what();
    refuse("the request " + path + " is not JSON: " + message.substr(message.find("] ") + 2));
  }
}

}  // namespace earlybird
