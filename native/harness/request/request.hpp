// The request of a kernel, its only input: a JSON object {"options": {...}, "points": [{...}, ...]}.
#pragma once

#include <istream>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace earlybird {

// The keys of one point with their values, in the order of the request.
class Point {
 public:
  using Value = std::variant<long long, double, std::string>;

  bool has(const std::string &key) const;

  // The value of `key`; ends the program with a message if it is absent, of another type or out of range.
  long long integer(const std::string &key) const;
  int integer(const std::string &key, int low, int high) const;
  double number(const std::string &key) const;
  double not_negative(const std::string &key) const;
  // Any value, numbers as JSON writes them.
  std::string text(const std::string &key) const;

  // A copy of the point with `key` set to `value`, or without `key`.
  Point with(const std::string &key, Value value) const;
  Point without(const std::string &key) const;

  // The point as a JSON object: the `config` of a sample.
  std::string config_json() const;

 private:
  const Value &value(const std::string &key) const;

  std::vector<std::pair<std::string, Value>> values_;
};

// Of ping-pong and msgrate: whether messages get new contents before every timed region, `buffers` being vary or absent.
// With reuse, the same bytes are sent again and again, as the OSU and Intel benchmarks do.
bool varies_contents(const Point &point);

using Assignments = std::map<std::string, std::string>;  // value by name

// The control variables that select a method.
struct MethodOptions {
  Assignments at_creation;  // set while the method's communicator is created; the communicator keeps them
  Assignments at_call;  // set before each call of the method; they take effect immediately, on any communicator
};

// When a series of iterations ends; see harness/sampling/stop_rule.hpp.
struct StopRules {
  std::string mode = "median";  // or "paper": Gillis et al. 2023, fixed iterations, mean, Student t
  double target = 0.02;         // relative half-width to reach
  double budget_s = 0.2;        // wall time per point
  int min_iterations = 30;      // after the warm-up
  int min_cold_iterations = 8;  // instead, beyond the budget, where the caches are emptied before each iteration
  double most_s = 3600;         // wall time after which a point ends, whatever number of iterations it has by then
  int max_iterations = 100000;
  int paper_iterations = 150;
  int paper_retries = 50;
  double paper_target = 0.05;
  double t_quantile = 1.655144534;  // for paper_iterations - 1 degrees of freedom, 90 % two-sided
};

struct Request {
  std::string out;      // the samples file
  std::string pattern;  // the messages of an exchange
  std::vector<std::string> methods;  // to measure interleaved at every point, if a kernel has several
  std::map<std::string, MethodOptions> control_variables;  // by method
  int ranks = 0;  // of the launch; 0 if they are not to be counted
  int threads = 1;  // per rank
  int seed = 1;  // of random computation times
  bool mean_over_ranks = false;  // of a collective: its time is the mean of the ranks' times, not that of the last rank
  StopRules rules;
  std::vector<Point> points;
};

// Reads the file that the only argument names; ends the program with a message that names the first key that is unknown,
// absent or out of range. Called before MPI_Init_thread, which needs to know whether several threads call MPI.
Request read_request(int argc, char **argv);
// The same from a stream; messages call it `path`.
Request read_request(std::istream &stream, const std::string &path);

}  // namespace earlybird
