// The interface of the moves of local search.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/problem.h"
#include "random/splitmix64.h"
#include "simulation/blocking/early_transfers.h"

namespace situate::search {

using problem::Problem;
using random::SplitMix64;

// Units that change their device and, after them, an op that changes its position in the order and
// a transfer that is sent before another op.
struct Change {
  struct Reassignment {
    int32_t unit, from, to;  // devices
  };
  struct Resending {
    sim::EarlyTransfers::Transfer transfer{-1, -1};  // of no tensor where none is
    sim::EarlyTransfers::Place from, to;
  };
  std::vector<Reassignment> units;
  int from = -1, to = -1;  // positions of the order, -1 where no op changes its own
  Resending sent;

  void clear() {
    units.clear();
    from = to = -1;
    sent.transfer.tensor = -1;
  }
};

// One kind of change. A move is proposed, applied to a state of the search, evaluated there, and
// undone unless its cost is accepted. States are PlanState and LoadState; a move reads the
// placement of the state that it was made for.
class Move {
 public:
  virtual ~Move() = default;

  // Whether the problem has anything that the move could change.
  virtual bool supports(const Problem& problem) const {
    return !problem.movable.empty();  // most moves need a unit with a choice of device
  }
  // Draws a change at random. False if the draw would change nothing.
  virtual bool propose(SplitMix64& random) = 0;

  template <typename State>
  void apply(State& state) const {
    state.apply(change_);
  }
  // The cost of the state to which the change was applied; any number above `limit`, infinity
  // included, if the cost exceeds it.
  template <typename State>
  double evaluate(State& state, double limit) const {
    return state.evaluate(limit);
  }
  template <typename State>
  void undo(State& state) const {
    state.undo(change_);
  }

 protected:
  Change change_;
};

}  // namespace situate::search
