// What fills memory most in an ordered placement.
#pragma once

#include <cstdint>
#include <vector>

#include "simulation/ordered_placement.h"

namespace situate::sim {

// The op that runs when most bytes are on one device, as if ops ran one after the other in their
// order; and of each tensor that is there then, the op that makes it and the last one that reads it
// there.
std::vector<int32_t> live_when_fullest(const OrderedPlacement& plan);

}  // namespace situate::sim
