#include "search/moves/focus.h"

#include <algorithm>
#include <utility>

#include "search/moves/draws.h"
#include "search/moves/odds.h"

namespace situate::search {

void Focus::within(std::span<const int32_t> ops) {
  all_ops_.assign(ops.begin(), ops.end());
  all_units_ = movable_of(ops);
  ops_.clear();
  units_.clear();
}

void Focus::on(std::vector<int32_t> ops) {
  ops_ = std::move(ops);
  units_ = movable_of(ops_);
}

std::vector<int32_t> Focus::movable_of(std::span<const int32_t> ops) const {
  std::vector<int32_t> units;
  const auto& movable = problem_.movable;
  for (const int op : ops) {
    const int unit = problem_.unit[op];
    if (std::binary_search(movable.begin(), movable.end(), unit)) units.push_back(unit);
  }
  return units;
}

int Focus::draw_op(SplitMix64& random) const {
  if (!ops_.empty() && in_focus.drawn(random)) return draw_of(random, ops_);
  return all_ops_.empty() ? random.below(problem_.n) : draw_of(random, all_ops_);
}

int Focus::draw_movable(SplitMix64& random) const {
  if (!units_.empty() && in_focus.drawn(random)) return draw_of(random, units_);
  return draw_of(random, all_units_.empty() ? problem_.movable : all_units_);
}

}  // namespace situate::search
