// Simulated annealing (S. Kirkpatrick et al., Science 220, 1983) over placement and order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "random/splitmix64.h"
#include "search/moves/block.h"
#include "search/moves/focus.h"
#include "search/moves/neighbourhood.h"
#include "search/plan_state.h"

namespace situate::search {

class Annealer {
 public:
  Annealer(const Problem& problem, Goal goal, Moves moves, uint64_t seed, const int32_t* placement,
           const int32_t* order, std::span<const sim::PlacedTransfer> transfers = {});

  // Takes up to `evaluations` steps at one temperature, in the unit of the cost; fewer if `ended`,
  // which is called now and then, returns true.
  void run(double temperature, int64_t evaluations, const std::function<bool()>& ended);
  // What counts from the next restart on.
  void use_mean(PeakMean mean) { state_.use_mean(mean); }
  // The blocks that move from now on.
  void use_blocks(std::shared_ptr<const Blocks> blocks) { block_move_.use(std::move(blocks)); }
  // Continues from another plan; the best one seen is kept.
  void restart(const int32_t* placement, const int32_t* order,
               std::span<const sim::PlacedTransfer> transfers = {});
  // The median absolute change of cost by random moves.
  double typical_change(int64_t evaluations);

  const BestPlan& best() const { return state_.best(); }
  int64_t evaluations() const { return evaluations_; }
  const Problem& problem() const { return state_.problem(); }

 private:
  Move* propose();
  void look();

  PlanState state_;
  SplitMix64 random_;
  Focus focus_;
  const bool focuses_;
  Neighbourhood moves_;
  BlockMove block_move_;
  int64_t evaluations_ = 0, next_look_ = 0;
};

}  // namespace situate::search
