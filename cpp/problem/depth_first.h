// Orders by walking a graph depth first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace situate::problem {

// Every op after its predecessors, and just before its first successor. The ops without successors
// are reached in the given order (n). The predecessors of op i are before[start[i]:start[i + 1]],
// of which the last comes first; there are no cycles.
std::vector<int32_t> depth_first_order(std::span<const int32_t> order,
                                       std::span<const int64_t> start,
                                       std::span<const int32_t> before);

}  // namespace situate::problem
