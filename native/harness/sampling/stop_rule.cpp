// Order-statistic intervals, warm-up detection and the two stop rules.
#include "harness/sampling/stop_rule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace earlybird {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double z_95_percent = 1.959963984540054;

// Linear interpolation between order statistics, as numpy's default.
double quantile_of_sorted(const std::vector<double> &sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::vector<double> after_warmup(const std::vector<double> &times_s) {
  return {times_s.begin() + static_cast<std::ptrdiff_t>(warmup_count(times_s)), times_s.end()};
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile_of_sorted(values, 0.5);
}

Interval median_interval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  const double reach = z_95_percent * std::sqrt(n);
  const double j = std::max(1.0, std::floor((n - reach) / 2));
  const double k = std::min(n, std::ceil(1 + (n + reach) / 2));
  return {values[static_cast<std::size_t>(j) - 1], values[static_cast<std::size_t>(k) - 1]};
}

double median_relative_half_width(const std::vector<double> &values) {
  if (values.size() < 3) return infinity;
  const Interval interval = median_interval(values);
  if (interval.high == interval.low) return 0.0;
  const double middle = median(values);
  return middle > 0 ? (interval.high - interval.low) / 2 / middle : infinity;
}

double student_t_relative_half_width(const std::vector<double> &values, double t_quantile) {
  if (values.size() < 2) return infinity;
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0.0;
  for (double value : values) squares += (value - mean) * (value - mean);
  if (squares == 0.0) return 0.0;
  return mean > 0 ? t_quantile * std::sqrt(squares / (n - 1) / n) / mean : infinity;
}

std::size_t warmup_count(const std::vector<double> &times_s) {
  const std::size_t n = times_s.size();
  if (n < 8) return 0;
  std::vector<double> half(times_s.begin() + static_cast<std::ptrdiff_t>(n / 2), times_s.end());
  std::sort(half.begin(), half.end());
  const double q1 = quantile_of_sorted(half, 0.25);
  const double q3 = quantile_of_sorted(half, 0.75);
  const double fence = q3 + 1.5 * (q3 - q1);
  std::size_t count = 0;
  while (count < n / 2 && times_s[count] > fence) ++count;
  return count;
}

bool stop_median(const std::vector<double> &times_s, double target, int min_iterations) {
  const std::vector<double> steady = after_warmup(times_s);
  return steady.size() >= static_cast<std::size_t>(min_iterations) && median_relative_half_width(steady) <= target;
}

bool stop_paper(const std::vector<double> &times_s, double t_quantile, double target) {
  return student_t_relative_half_width(times_s, t_quantile) <= target;
}

}  // namespace earlybird
