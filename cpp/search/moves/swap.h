// Moves in which two units trade devices: where memory is tight, neither can move alone.
#pragma once

#include "search/moves/focus.h"
#include "search/moves/move.h"
#include "simulation/ordered_placement.h"

namespace situate::search {

// Any two units.
class SwapMove : public Move {
 public:
  explicit SwapMove(const sim::Placement& placement) : placement_(placement) {}
  bool propose(SplitMix64& random) override;

 private:
  const sim::Placement& placement_;
};

// The units of two ops that are close in the order.
class NearbySwapMove : public Move {
 public:
  NearbySwapMove(const sim::OrderedPlacement& plan, const Focus& focus)
      : plan_(plan), focus_(focus) {}
  bool propose(SplitMix64& random) override;

 private:
  const sim::OrderedPlacement& plan_;
  const Focus& focus_;
};

}  // namespace situate::search
