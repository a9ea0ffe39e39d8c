// A move that gives an op another position in the order.
#pragma once

#include "search/moves/focus.h"
#include "search/moves/move.h"
#include "simulation/ordered_placement.h"

namespace situate::search {

// Draws another position for the op, between its last producer and its first consumer. False if
// there is none.
bool draw_reorder(SplitMix64& random, const sim::OrderedPlacement& plan, int op, Change& change);

class ReorderMove : public Move {
 public:
  ReorderMove(const sim::OrderedPlacement& plan, const Focus& focus) : plan_(plan), focus_(focus) {}
  bool supports(const Problem&) const override { return true; }
  bool propose(SplitMix64& random) override;

 private:
  const sim::OrderedPlacement& plan_;
  const Focus& focus_;
};

}  // namespace situate::search
