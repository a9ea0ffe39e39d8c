// Orders of ops, run one after the other, that hold few bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/placed/copies.h"

namespace situate::search {

// Of the ops that could run next, the one that takes the fewest bytes more than it lets go of; of
// equal ones, and of those that take none, the first along a line, which is a topological order of
// all ops.
std::vector<int32_t> frugal_order(const Problem& problem, std::span<const int32_t> device,
                                  std::span<const int32_t> line);

}  // namespace situate::search
