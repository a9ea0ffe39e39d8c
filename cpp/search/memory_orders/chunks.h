// The chunks that a part of an order is cut into.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/memory_orders/live_tensors.h"

namespace situate::search {

// The chunk of each place [begin, end) of an order, of `most` at most. Where there are more ops,
// the part is cut into runs where least is in use nearby, and ops that do not depend on one another
// within a run are apart, unless that makes too many. `place` (n): where each op stands; `use`: of
// the order.
std::vector<int32_t> chunks_of(const Problem& problem, std::span<const int32_t> order,
                               std::span<const int32_t> place, const LiveTensors::Use& use,
                               int begin, int end, int most);

}  // namespace situate::search
