// Strategies that no best plan needs: another of the same op costs no more, whatever the
// neighbours choose, and uses no more memory at any time (dead-end elimination, J. Desmet et al.,
// Nature 356, 1992).
#pragma once

#include <cstdint>
#include <vector>

#include "sharding/instance.h"

namespace situate::sharding {

// By strategy, over all ops: 1 to keep it, 0 if a strategy that stays dominates it.
std::vector<uint8_t> undominated(const Instance& instance);

}  // namespace situate::sharding
