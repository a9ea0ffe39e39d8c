// The distributions that mutants are drawn from: for every key of a chromosome a beta distribution,
// as REGAL proposes them (A. Paliwal et al., ICLR 2020, A.6).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "random/beta_quantiles.h"
#include "random/splitmix64.h"

namespace situate::search {

using random::SplitMix64;

class KeyDistribution {
 public:
  // A beta distribution a key; both spans have positive, finite numbers.
  KeyDistribution(std::span<const float> alpha, std::span<const float> beta);

  void draw(SplitMix64& random, float* keys) const;

 private:
  // key_of(key, 24 bits)
  template <typename Key>
  void draw_pairs(SplitMix64& random, float* keys, Key key_of) const;

  size_t keys_;
  std::vector<random::BetaQuantiles> distinct_;
  std::vector<uint32_t> of_key_;  // empty where all are uniform
};

}  // namespace situate::search
