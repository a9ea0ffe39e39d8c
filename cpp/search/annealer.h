// Simulated annealing (Kirkpatrick et al., Science 220, 1983) over placement and order. The
// threshold of a step is drawn before the step is evaluated, so that a bad one is cut off early.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "problem/problem.h"
#include "random/splitmix64.h"
#include "search/decision.h"
#include "simulation/incremental_timer.h"
#include "simulation/simulator.h"

namespace situate::search {

using sim::LinearTimer;
using sim::Simulator;

enum class Goal { time, memory };

class Annealer {
 public:
  Annealer(const Problem& problem, Goal goal, uint64_t seed, const int32_t* placement,
           const int32_t* order);

  // Takes up to `evaluations` steps at one temperature (in the unit of the cost), fewer if `ended`,
  // which it asks now and then, says so.
  void run(double temperature, int64_t evaluations, const std::function<bool()>& ended);
  // What moves together from now on.
  void move(std::shared_ptr<const Blocks> blocks) { blocks_ = std::move(blocks); }
  // Continues from another decision; the best one seen is kept.
  void restart(const int32_t* placement, const int32_t* order);
  // Median size of the cost changes that random moves make.
  double typical_change(int64_t evaluations);

  struct Best {
    bool feasible = false;
    double cost = 0;
    std::vector<int32_t> placement, order;
  };
  const Best& best() const { return best_; }
  int64_t evaluations() const { return evaluations_; }
  const Problem& problem() const { return problem_; }

 private:
  double evaluate(int first, double limit);
  void simulate();
  double largest_peak() const;
  double with_overflow(double value);
  bool fits_anyway();
  void accept(double cost);
  void verify();
  void keep();

  const Problem& problem_;
  const Goal goal_;
  SplitMix64 random_;
  std::unique_ptr<LinearDecision> decision_;
  std::unique_ptr<LinearTimer> timer_;    // the goal of time
  std::unique_ptr<Simulator> simulator_;  // the goal of memory, and whether a plan fits
  std::vector<float> priority_;
  std::vector<int64_t> peak_, bytes_, workspace_;
  bool peaks_known_ = false;
  bool roomy_;                   // every device could hold everything
  bool fits_ = false;            // what was accepted last, as far as is known
  bool candidate_fits_ = false;  // what was evaluated last
  bool checked_ = true;          // whether its memory was looked at, not taken for granted
  // While a plan fits, memory is looked at after every `patience_` accepted moves only; if they
  // broke it, they are all taken back.
  int64_t patience_ = 1, unverified_ = 0;
  bool count_bytes_ = false;  // once moves keep breaking memory, an estimate refuses them early
  std::vector<int32_t> safe_placement_, safe_order_;
  double cost_ = 0;
  Best best_;
  int64_t evaluations_ = 0;
  std::shared_ptr<const Blocks> blocks_ = std::make_shared<Blocks>();
};

}  // namespace situate::search
