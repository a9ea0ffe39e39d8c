// Strategies that no best plan needs: another of the same op costs no more, whatever the
// neighbours choose, and uses no more memory at any time (dead-end elimination, J. Desmet et al.,
// Nature 356, 1992).
#pragma once

#include <cstdint>
#include <vector>

#include "sharding/instance.h"

namespace situate::sharding {

// Takes from `keep`, which has a number for each strategy over all ops, those that another one in
// it dominates.
void drop_dominated(const Instance& instance, std::vector<uint8_t>& keep);

}  // namespace situate::sharding
