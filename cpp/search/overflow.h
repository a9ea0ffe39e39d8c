// The cost of exceeding memory, by which searches compare decisions that do not fit.
#pragma once

namespace situate::search {

// What does not fit costs so much more at once, and `overflow_slope` times the excess more.
constexpr double overflow_cost = 0.05;
constexpr double overflow_slope = 10;

// The factor by which a decision costs more whose excess over capacities, each as a share of its
// device's, is this in sum.
inline double overflow_penalty(double overflow) {
  return overflow > 0 ? 1 + overflow_cost + overflow_slope * overflow : 1;
}

}  // namespace situate::search
