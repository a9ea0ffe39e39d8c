// Draws from beta distributions (R. C. H. Cheng, Generating beta variates with nonintegral shape
// parameters, CACM 21(4), 1978: algorithms BB and BC).
#pragma once

#include <algorithm>
#include <cmath>

#include "random/splitmix64.h"

namespace situate::random {

class Beta {
 public:
  // Both parameters are positive and finite.
  Beta(double alpha, double beta)
      : uniform_(alpha == 1 && beta == 1),
        above_one_(std::min(alpha, beta) > 1),
        a_(above_one_ ? std::min(alpha, beta) : std::max(alpha, beta)),
        b_(above_one_ ? std::max(alpha, beta) : std::min(alpha, beta)),
        turned_(alpha != a_),
        sum_(a_ + b_) {
    if (above_one_) {
      slope_ = std::sqrt((sum_ - 2) / (2 * a_ * b_ - sum_));
      gamma_ = a_ + 1 / slope_;
    } else {
      const double delta = 1 + a_ - b_;
      slope_ = 1 / b_;
      low_ = delta * (0.0138889 + 0.0416667 * b_) / (a_ * slope_ - 0.777778);
      high_ = 0.25 + (0.5 + 0.25 / delta) * b_;
    }
  }

  // From 0 to 1, both included.
  double draw(SplitMix64& random) const {
    if (uniform_) return random.unit();
    const double w = above_one_ ? above_one(random) : below_one(random);
    return (turned_ ? b_ : w) / (b_ + w);
  }

 private:
  static constexpr double log_4 = 1.3862943611198906, log_5_and_1 = 2.6094379124341003;
  static constexpr double largest_exponent = 700;  // of what exp() can tell from infinity

  static double inside(SplitMix64& random) { return random.unit() + 0x1p-54; }
  double logit(double u) const {
    return std::min(slope_ * std::log(u / (1 - u)), largest_exponent);
  }

  double above_one(SplitMix64& random) const {  // BB
    for (;;) {
      const double u = inside(random), z = u * u * inside(random);
      const double v = logit(u), w = a_ * std::exp(v), r = gamma_ * v - log_4, s = a_ + r - w;
      if (s + log_5_and_1 >= 5 * z) return w;
      const double t = std::log(z);
      if (s > t || r + sum_ * std::log(sum_ / (b_ + w)) >= t) return w;
    }
  }
  double below_one(SplitMix64& random) const {  // BC
    for (;;) {
      const double u = inside(random), other = inside(random), y = u * other, z = u * y;
      if (u < 0.5 ? 0.25 * other + z - y >= low_ : z >= high_) continue;
      const double v = logit(u), w = a_ * std::exp(v);
      if (u >= 0.5 && z <= 0.25) return w;
      if (sum_ * (std::log(sum_ / (b_ + w)) + v) - log_4 >= std::log(z)) return w;
    }
  }

  bool uniform_, above_one_;
  double a_, b_;
  bool turned_;  // whether a_ is beta
  double sum_, slope_ = 0, gamma_ = 0, low_ = 0, high_ = 0;
};

}  // namespace situate::random
