// Moves that give a unit another device.
#pragma once

#include "search/moves/focus.h"
#include "search/moves/move.h"
#include "simulation/ordered_placement.h"

namespace situate::search {

// One unit goes to another device.
class ReassignMove : public Move {
 public:
  ReassignMove(const sim::Placement& placement, const Focus& focus)
      : placement_(placement), focus_(focus) {}
  bool propose(SplitMix64& random) override;

 private:
  const sim::Placement& placement_;
  const Focus& focus_;
};

// One unit goes to another device, and one of its ops to another position of the order.
class ReassignAndReorderMove : public Move {
 public:
  ReassignAndReorderMove(const sim::OrderedPlacement& plan, const Focus& focus)
      : plan_(plan), focus_(focus) {}
  bool propose(SplitMix64& random) override;

 private:
  const sim::OrderedPlacement& plan_;
  const Focus& focus_;
};

}  // namespace situate::search
