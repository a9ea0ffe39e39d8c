// The chunks that a part of an order is cut into.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/memory_orders/live_tensors.h"

namespace situate::search {

// The chunk of each place [begin, end) of an order: `most` of them at most. Where there are more
// ops, the part is cut where least is in use, and what does not depend on one another between two
// cuts is apart. `place` (n): where each op stands; `use`: of the order.
std::vector<int32_t> chunks_of(const Problem& problem, std::span<const int32_t> order,
                               std::span<const int32_t> place, const LiveTensors::Use& use,
                               int begin, int end, int most);

}  // namespace situate::search
