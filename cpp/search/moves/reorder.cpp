#include "search/moves/reorder.h"

#include <algorithm>

#include "search/moves/odds.h"

namespace situate::search {

bool draw_reorder(SplitMix64& random, const sim::OrderedPlacement& plan, int op, Change& change) {
  const Problem& p = plan.problem();
  int low = -1, high = p.n;  // of the last producer and the first consumer
  for (const int tensor : p.inputs_of(op)) low = std::max(low, plan.position(p.producer[tensor]));
  for (const int tensor : p.outputs_of(op))
    for (const int consumer : p.consumers_of(tensor))
      high = std::min(high, plan.position(consumer));
  ++low;
  --high;
  const int from = plan.position(op);
  if (high - low > 2 * longest_jump) {
    low = std::max(low, from - longest_jump);
    high = std::min(high, from + longest_jump);
  }
  if (low >= high) return false;
  int to = low + random.below(high - low);
  if (to >= from) ++to;  // one position less than there are was drawn: its own is none
  change.from = from;
  change.to = to;
  return true;
}

bool ReorderMove::propose(SplitMix64& random) {
  change_.clear();
  return draw_reorder(random, plan_, focus_.draw_op(random), change_);
}

}  // namespace situate::search
