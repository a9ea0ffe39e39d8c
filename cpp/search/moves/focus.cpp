#include "search/moves/focus.h"

#include <algorithm>
#include <utility>

#include "search/moves/draws.h"
#include "search/moves/odds.h"

namespace situate::search {

void Focus::on(std::vector<int32_t> ops) {
  ops_ = std::move(ops);
  units_.clear();
  const auto& movable = problem_.movable;
  for (const int op : ops_) {
    const int unit = problem_.unit[op];
    if (std::binary_search(movable.begin(), movable.end(), unit)) units_.push_back(unit);
  }
}

int Focus::draw_op(SplitMix64& random) const {
  return !ops_.empty() && in_focus.drawn(random) ? draw_of(random, ops_) : random.below(problem_.n);
}

int Focus::draw_movable(SplitMix64& random) const {
  return draw_of(random, !units_.empty() && in_focus.drawn(random) ? units_ : problem_.movable);
}

}  // namespace situate::search
