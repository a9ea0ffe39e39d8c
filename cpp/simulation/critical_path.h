// What holds up the step of an ordered placement with overlapped transfers.
#pragma once

#include <cstdint>
#include <vector>

#include "simulation/ordered_placement.h"

namespace situate::sim {

// Seconds from the beginning of the step.
struct PlanTimes {
  std::vector<double> start;    // of ops
  std::vector<double> arrival;  // of inputs that come from elsewhere
};

// On the critical path: ops that wait for a transfer, each with the op that sends it, and ops that
// wait while their device runs what they do not read, each with the op that it runs.
std::vector<int32_t> held_up(const OrderedPlacement& plan, const PlanTimes& times);

}  // namespace situate::sim
