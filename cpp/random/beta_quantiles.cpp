#include "random/beta_quantiles.h"

#include <algorithm>
#include <cmath>

namespace situate::random {

namespace {

constexpr int steps = 256;             // of the integral
constexpr double negligible = 25;      // a density is, once its logarithm has fallen by so much
constexpr double outermost = 0x1p-20;  // the probability of less than the first entry of a table

// Of the distribution of t = log(x / (1 - x)), where x has a beta distribution: it has one peak and
// no pole, and tails that fall exponentially.
class LogitDensity {
 public:
  LogitDensity(double alpha, double beta) : sum_(alpha + beta), beta_(beta) {
    peak_ = std::log(alpha / beta);
    at_peak_ = logarithm(peak_);
    // No wider than one, within which the density changes from one tail to the other.
    width_ = std::min(1.0, std::sqrt(sum_ / (alpha * beta)));
  }

  double peak() const { return peak_; }
  double width() const { return width_; }
  double at(double t) const { return std::exp(logarithm(t) - at_peak_); }
  // How far from the peak the density is negligible; `side` is 1 or -1.
  double reach(double side) const {
    double found = width_;
    while (at_peak_ - logarithm(peak_ + side * found) < negligible) found *= 2;
    return found;
  }

 private:
  // Of x^alpha (1 - x)^beta.
  double logarithm(double t) const {
    const double log_x = std::min(t, 0.0) - std::log1p(std::exp(-std::abs(t)));
    return sum_ * log_x - beta_ * t;
  }

  double sum_, beta_, peak_, at_peak_, width_;
};

struct Distribution {
  std::array<double, steps + 1> t, below;  // a logit, and the probability of a smaller one
};

// By the trapezoidal rule over s, with t = peak + width sinh(s): steps are short at the peak and
// grow with the distance from it.
Distribution distribution(const LogitDensity& density) {
  const double first = -std::asinh(density.reach(-1) / density.width());
  const double last = std::asinh(density.reach(1) / density.width());
  Distribution found;
  double before = 0, sum = 0;
  for (int i = 0; i <= steps; ++i) {
    const double s = first + (last - first) * i / steps;
    found.t[i] = density.peak() + density.width() * std::sinh(s);
    const double now = density.at(found.t[i]) * std::cosh(s);
    if (i) sum += before + now;
    found.below[i] = sum;
    before = now;
  }
  for (double& below : found.below) below /= sum;
  return found;
}

}  // namespace

BetaQuantiles::BetaQuantiles(double alpha, double beta) {
  if (alpha == 1 && beta == 1) {  // without the integral's error
    for (int i = 0; i <= cells; ++i) of_[i] = static_cast<float>(i) / cells;
    return;
  }
  const auto [t, below] = distribution(LogitDensity(alpha, beta));
  size_t i = 0;
  for (int cell = 0; cell <= cells; ++cell) {
    const double wanted = std::clamp(static_cast<double>(cell) / cells, outermost, 1 - outermost);
    while (i + 2 < below.size() && below[i + 1] < wanted) ++i;
    const double share = (wanted - below[i]) / (below[i + 1] - below[i]);
    const double logit = t[i] + (t[i + 1] - t[i]) * std::clamp(share, 0.0, 1.0);
    of_[cell] = static_cast<float>(1 / (1 + std::exp(-logit)));
  }
}

}  // namespace situate::random
