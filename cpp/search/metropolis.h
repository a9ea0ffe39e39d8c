// The acceptance rule of simulated annealing (N. Metropolis et al., J. Chem. Phys. 21(6), 1953; S.
// Kirkpatrick et al., Science 220, 1983): a change for the worse by x is accepted with probability
// exp(-x / temperature).
//
// The random number u of the rule is drawn before a change is evaluated. The change is accepted if
// its cost does not exceed cost - temperature log(u), so that the evaluation of a bad change can
// end as soon as this limit is exceeded.
#pragma once

#include <cmath>
#include <limits>

#include "random/splitmix64.h"
#include "search/moves/move.h"

namespace situate::search {

inline double acceptance_limit(double cost, double temperature, SplitMix64& random) {
  return cost - temperature * std::log(random.unit() + 1e-300);  // log(0) is avoided
}

// A state of infinite cost accepts others of infinite cost, so that search can leave it.
inline bool accepted(double cost, double limit, double current) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return cost <= limit && (cost < infinity || current == infinity);
}

// Applies a proposed move, evaluates it, and accepts it or takes it back.
template <typename State>
void metropolis_step(State& state, const Move& move, double temperature, SplitMix64& random) {
  const double limit = acceptance_limit(state.cost(), temperature, random);
  move.apply(state);
  const double cost = move.evaluate(state, limit);
  if (accepted(cost, limit, state.cost()))
    state.accept(cost);
  else
    move.undo(state);
}

}  // namespace situate::search
