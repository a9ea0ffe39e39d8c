// Moves that give a unit another device.
#pragma once

#include "search/moves/move.h"
#include "simulation/ordered_placement.h"

namespace situate::search {

// One unit goes to another device.
class ReassignMove : public Move {
 public:
  explicit ReassignMove(const sim::Placement& placement) : placement_(placement) {}
  bool propose(SplitMix64& random) override;

 private:
  const sim::Placement& placement_;
};

// One unit goes to another device, and one of its ops to another position of the order.
class ReassignAndReorderMove : public Move {
 public:
  explicit ReassignAndReorderMove(const sim::OrderedPlacement& plan) : plan_(plan) {}
  bool propose(SplitMix64& random) override;

 private:
  const sim::OrderedPlacement& plan_;
};

}  // namespace situate::search
