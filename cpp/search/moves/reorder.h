// A move that gives an op another position in the order.
#pragma once

#include "search/moves/move.h"
#include "simulation/ordered_placement.h"

namespace situate::search {

// Draws another position for the op, between its last producer and its first consumer. False if
// there is none.
bool draw_reorder(SplitMix64& random, const sim::OrderedPlacement& plan, int op, Change& change);

class ReorderMove : public Move {
 public:
  explicit ReorderMove(const sim::OrderedPlacement& plan) : plan_(plan) {}
  bool supports(const Problem&) const override { return true; }
  bool propose(SplitMix64& random) override;

 private:
  const sim::OrderedPlacement& plan_;
};

}  // namespace situate::search
