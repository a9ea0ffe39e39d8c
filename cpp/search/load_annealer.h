// Simulated annealing of the period: the load of the busiest device or channel in steady pipelined
// operation, for which only the placement matters.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "random/splitmix64.h"
#include "search/line_split.h"
#include "search/load_state.h"
#include "search/moves/focus.h"
#include "search/moves/neighbourhood.h"

namespace situate::search {

class LoadAnnealer {
 public:
  // `line` orders all units along the pipeline.
  LoadAnnealer(const Problem& problem, Moves moves, uint64_t seed, const int32_t* placement,
               const int32_t* line);

  // As Annealer::run().
  void run(double temperature, int64_t evaluations, const std::function<bool()>& ended);
  void restart(const int32_t* placement) { state_.restart(placement); }
  // See LoadState::weigh() and LineSplit::split().
  void weigh(const int64_t* bytes, const int64_t* capacity);
  void split(const std::vector<int32_t>& devices, int step) { line_split_.split(devices, step); }

  const BestPlacement& best() const { return state_.best(); }
  int64_t evaluations() const { return evaluations_; }
  const Problem& problem() const { return state_.problem(); }

 private:
  LoadState state_;
  SplitMix64 random_;
  const Focus anywhere_;
  Neighbourhood moves_;
  LineSplit line_split_;
  int64_t evaluations_ = 0;
};

}  // namespace situate::search
