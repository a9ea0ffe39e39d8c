// SplitMix64 (Steele et al., OOPSLA 2014): small, fast, good enough to pick moves.
#pragma once

#include <cstdint>

namespace situate::random {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int below(int bound) {
    return static_cast<int>((next() >> 32) * static_cast<uint64_t>(bound) >> 32);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace situate::random
