// Ways of dividing the plans of a relaxation in two.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sharding/relaxation.h"

namespace situate::sharding {

// Strategies of either half, over those of the relaxation's instance.
using Halves = std::pair<std::vector<uint8_t>, std::vector<uint8_t>>;

// Up to `most` ways. By memory, an op takes at most so much in one half, and more in the other. By
// cost, the strategies of least reduced costs are apart from all others. `gap` is the difference of
// the bound to the best plan.
std::vector<Halves> halves(const Relaxation& relaxation, double gap, int most);

}  // namespace situate::sharding
