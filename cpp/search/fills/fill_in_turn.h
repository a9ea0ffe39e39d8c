// Devices that are filled one after the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.h"

namespace situate::search {

// The device of each unit (units), where units go in the order of their first ops, of ops (n), to
// the first device of `turn` that has room for their weight (units). A device that is full leaves
// the turn for good. Of devices that a unit may not run on the turn goes on to the next; a unit
// that may run on none of the turn goes to the first that it may.
std::vector<int32_t> fill_in_turn(const problem::Problem& problem, std::span<const int32_t> ops,
                                  std::span<const double> weight, std::vector<double> room,
                                  std::vector<int32_t> turn);

}  // namespace situate::search
