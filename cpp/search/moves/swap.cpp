#include "search/moves/swap.h"

#include "search/moves/draws.h"
#include "search/moves/odds.h"

namespace situate::search {

namespace {

// False where the units are on one device, or one may not run on the other's.
bool swap(const sim::Placement& placement, int a, int b, Change& change) {
  const Problem& p = placement.problem();
  const int here = placement.device_of(a), there = placement.device_of(b);
  if (here == there || !p.may_run(a, there) || !p.may_run(b, here)) return false;
  change.units.push_back({a, here, there});
  change.units.push_back({b, there, here});
  return true;
}

}  // namespace

bool SwapMove::propose(SplitMix64& random) {
  change_.clear();
  const int a = draw_movable(random, placement_.problem());
  const int b = draw_movable(random, placement_.problem());
  return swap(placement_, a, b, change_);
}

bool NearbySwapMove::propose(SplitMix64& random) {
  change_.clear();
  const Problem& p = plan_.problem();
  const int unit = focus_.draw_movable(random);
  const int op = draw_member(random, p, unit);
  const int there = plan_.position(op) + 1 + random.below(nearby);
  if (there >= p.n) return false;
  return swap(plan_.placement(), unit, p.unit[plan_.order()[there]], change_);
}

}  // namespace situate::search
