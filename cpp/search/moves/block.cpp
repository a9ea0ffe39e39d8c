#include "search/moves/block.h"

#include "search/moves/odds.h"

namespace situate::search {

// All units of the block, or those that share the device of one of them, go to one device.
bool BlockMove::propose(SplitMix64& random) {
  change_.clear();
  const Problem& p = placement_.problem();
  const auto block = blocks_->draw(random);
  const int seed = block[random.below(static_cast<int>(block.size()))];
  const int here = placement_.device_of(seed);
  const int device = random.below(p.d);
  const bool whole = whole_block.drawn(random);
  if (device == here && !whole) return false;
  for (const int unit : block) {
    const int now = placement_.device_of(unit);
    if (now == device || (!whole && now != here) || !p.may_run(unit, device)) continue;
    change_.units.push_back({unit, now, device});
  }
  return !change_.units.empty();
}

}  // namespace situate::search
