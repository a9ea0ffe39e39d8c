// The plan that annealing changes: a placement and an order, what it costs, and whether it fits the
// devices' memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "problem/problem.h"
#include "search/goal.h"
#include "search/moves/move.h"
#include "simulation/blocking/blocking_timer.h"
#include "simulation/blocking/blocking_transfers.h"
#include "simulation/blocking/early_transfers.h"
#include "simulation/incremental/incremental_timer.h"
#include "simulation/ordered_placement.h"
#include "simulation/simulator.h"

namespace situate::search {

struct BestPlan {
  bool feasible = false;
  double cost = 0;
  std::vector<int32_t> placement, order;
  std::vector<sim::PlacedTransfer> transfers;  // all but signals, where one is early; else none
};

class PlanState {
 public:
  PlanState(const Problem& problem, Goal goal, PeakMean mean, const int32_t* placement,
            const int32_t* order, std::span<const sim::PlacedTransfer> transfers);
  PlanState(const PlanState&) = delete;
  PlanState& operator=(const PlanState&) = delete;

  void use_mean(PeakMean mean) { mean_ = mean; }  // from the next restart on
  // Continues from another plan; the best one seen is kept.
  void restart(const int32_t* placement, const int32_t* order,
               std::span<const sim::PlacedTransfer> transfers);

  void apply(const Change& change);
  void undo(const Change& change);
  // The makespan in seconds or, for the goal of memory, peaks in bytes, with a penalty where the
  // plan exceeds memory; for that of the shortfall, bytes. Infinite as soon as a makespan must
  // exceed `limit`.
  double evaluate(double limit);
  // Keeps the change that was evaluated last.
  void accept(double cost);
  // Looks at the memory of all changes that were accepted without looking at it.
  void finish();

  double cost() const { return cost_; }
  const BestPlan& best() const { return best_; }
  // Ops that a change should concern to lower the cost: see sim::held_up(), and for bytes
  // sim::live_when_fullest(). None where that is not known.
  std::vector<int32_t> in_the_way() const;
  const Problem& problem() const { return problem_; }
  const sim::OrderedPlacement& plan() const { return plan_; }
  const sim::EarlyTransfers& early() const { return early_; }
  // Whether the timer knows transfers that are early.
  bool sends_early() const { return blocking_timer_ != nullptr; }

 private:
  void tell_timer(const Change& change);
  void find_effect(const Change& change);
  double evaluate_atomic();
  double evaluate_peaks();
  double evaluate_shortfall();
  void simulate();
  double largest_peak() const;
  double mean_peak() const;
  double power_mean() const;
  double with_overflow(double value);
  bool fits_all_at_once();
  void verify_memory();
  void keep_if_best();

  const Problem& problem_;
  const Goal goal_;
  PeakMean mean_;
  sim::OrderedPlacement plan_;
  sim::EarlyTransfers early_;
  std::unique_ptr<sim::IncrementalTimer> timer_;        // the goal of time
  std::unique_ptr<sim::BlockingTimer> blocking_timer_;  // in its place where it can be
  std::unique_ptr<sim::Simulator> simulator_;           // other goals, and whether a plan fits
  sim::Effect effect_{0, 0};                            // of the change applied last
  std::vector<float> priority_;
  std::vector<int64_t> peak_, bytes_, workspace_;
  bool peaks_known_ = false;
  const bool never_overflows_;   // every device could hold everything
  bool fits_ = false;            // the plan accepted last, as far as is known
  bool candidate_fits_ = false;  // the plan evaluated last
  bool memory_checked_ = true;   // of the plan evaluated last
  // While a plan fits, its memory is checked after every `patience_` accepted changes only. If they
  // broke it, all of them are taken back to the safe plan.
  int64_t patience_ = 1, unchecked_ = 0;
  std::vector<int32_t> safe_placement_, safe_order_;
  bool estimate_bytes_ =
      false;  // once changes keep breaking memory, an estimate refuses them early
  double cost_ = 0;
  // Of the plan evaluated last, where the goal is not time: the largest peak with that penalty, or
  // the shortfall.
  double candidate_value_ = 0;
  BestPlan best_;
};

}  // namespace situate::search
