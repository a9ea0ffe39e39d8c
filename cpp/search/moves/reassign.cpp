#include "search/moves/reassign.h"

#include "search/moves/draws.h"
#include "search/moves/reorder.h"

namespace situate::search {

bool ReassignMove::propose(SplitMix64& random) {
  change_.clear();
  const int unit = focus_.draw_movable(random);
  const int device = draw_other_device(random, placement_, unit);
  change_.units.push_back({unit, placement_.device_of(unit), device});
  return true;
}

bool ReassignAndReorderMove::propose(SplitMix64& random) {
  change_.clear();
  const int unit = focus_.draw_movable(random);
  const int device = draw_other_device(random, plan_.placement(), unit);
  change_.units.push_back({unit, plan_.placement().device_of(unit), device});
  draw_reorder(random, plan_, draw_member(random, plan_.problem(), unit), change_);
  return true;
}

}  // namespace situate::search
