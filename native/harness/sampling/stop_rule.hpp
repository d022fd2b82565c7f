// Stop rules for series of times. src/earlybird/models/statistics.py implements the same rules; tests check both with
// shared vectors. Independent of MPI.
#pragma once

#include <cstddef>
#include <vector>

namespace earlybird {

struct Interval {
  double low;
  double high;
};

double median(std::vector<double> values);

// Distribution-free 95 % interval of the median from order statistics (normal approximation of the binomial).
Interval median_interval(std::vector<double> values);

// (high - low) / 2 / median; infinity for fewer than three values.
double median_relative_half_width(const std::vector<double> &values);

// t_quantile * s / sqrt(n) / mean; infinity for fewer than two values.
double student_t_relative_half_width(const std::vector<double> &values, double t_quantile);

// Number of leading entries above the Tukey fence of the second half of the series, at most half of the series; 0 for fewer
// than eight values.
std::size_t warmup_count(const std::vector<double> &times_s);

// Whether the times after the warm-up satisfy the median rule.
bool stop_median(const std::vector<double> &times_s, double target, int min_iterations);

// Whether the series satisfies the paper's rule.
bool stop_paper(const std::vector<double> &times_s, double t_quantile, double target);

}  // namespace earlybird
