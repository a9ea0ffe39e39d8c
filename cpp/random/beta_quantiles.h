// Draws from beta distributions: the quantile of a uniform number, from a table.
#pragma once

#include <array>
#include <cstdint>

namespace situate::random {

class BetaQuantiles {
 public:
  static constexpr double most = 1e12;
  static constexpr int bits = 24;  // of a uniform number

  // Both parameters are positive and at most `most`: beyond, a density has no digits left.
  BetaQuantiles(double alpha, double beta);

  // Of uniform / 2^24, linear between quantiles of multiples of 1 / cells; from 0 to 1.
  float operator()(uint32_t uniform) const {
    constexpr int shift = bits - cell_bits;
    const float* cell = &of_[uniform >> shift];
    const auto part = static_cast<float>(static_cast<int32_t>(uniform & ((1u << shift) - 1)));
    return cell[0] + (cell[1] - cell[0]) * (part * (1.0f / (1 << shift)));
  }

 private:
  static constexpr int cell_bits = 9, cells = 1 << cell_bits;
  std::array<float, cells + 1> of_;
};

}  // namespace situate::random
