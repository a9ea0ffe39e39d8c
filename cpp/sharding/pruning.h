// Strategies that no plan within the limit has.
#pragma once

#include <cstdint>
#include <vector>

#include "sharding/instance.h"

namespace situate::sharding {

// Takes from `keep`, which has a number for each strategy over all ops, strategies
// - that exceed the limit beside the least memory of all other ops,
// - that stand with no strategy of some neighbour (arc consistency).
// False if an op has no strategy left: then no plan within the limit has only those in `keep`.
bool prune(const Instance& instance, std::vector<uint8_t>& keep);

}  // namespace situate::sharding
