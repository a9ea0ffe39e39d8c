// Peaks of memory at every instant of a finished schedule, where transfers are blocking.
#pragma once

#include <cstdint>

#include "simulation/live_bytes.h"
#include "simulation/timeline.h"

namespace situate::sim {

// Adds up the bytes that appear and vanish at each instant. What appears and vanishes at the same
// instant does not count.
void peak_over_time(const Problem& problem, const int32_t* placement, const Timeline& timeline,
                    double makespan, LiveBytes& bytes);

}  // namespace situate::sim
