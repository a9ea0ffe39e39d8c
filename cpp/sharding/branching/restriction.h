// An instance that has only some of the strategies of another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sharding/instance.h"

namespace situate::sharding {

struct Restriction {
  // `keep` has a number for each strategy over all ops, and is not 0 for one of each op at least.
  // Ops, times, edges and the order of neighbours stay.
  Restriction(const Instance& whole, std::span<const uint8_t> keep);

  // By op, the strategy of the whole instance.
  std::vector<int> expand(std::span<const int> chosen) const;

  std::vector<int> strategy;  // by strategy over all ops, its number in the whole instance's op
  Instance instance;
};

}  // namespace situate::sharding
