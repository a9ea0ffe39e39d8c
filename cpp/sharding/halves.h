// Ways of dividing the plans of a relaxation in two.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sharding/relaxation.h"

namespace situate::sharding {

// Strategies of either half, over those of the relaxation's instance.
using Halves = std::pair<std::vector<uint8_t>, std::vector<uint8_t>>;

// Up to `most` ways, the most promising first. Where memory has a price, an op takes at most so
// much or more of it; else the strategies of least reduced costs are apart from the others.
// `gap` is what the bound lacks to the best plan.
std::vector<Halves> halves(const Relaxation& relaxation, double gap, int most);

}  // namespace situate::sharding
