#include "search/plan_state.h"

#include <algorithm>
#include <cmath>

#include "problem/sentinels.h"
#include "search/fits_one_device.h"
#include "search/overflow.h"
#include "simulation/atomic_calls.h"
#include "simulation/fullest_moment.h"

namespace situate::search {

using problem::add_bytes;
using problem::Memory;

namespace {

constexpr int64_t longest_patience = 1024;

// How many times a mean of the peaks counts: a change that empties another device than the fullest
// makes room for the next.
constexpr double mean_peaks = 3;

// Beside the bytes that are too many, so that room on one device is made for those of another.
constexpr double mean_peak_in_shortfall = 0.1;

}  // namespace

PlanState::PlanState(const Problem& problem, Goal goal, PeakMean mean, const int32_t* placement,
                     const int32_t* order, std::span<const sim::PlacedTransfer> transfers)
    : problem_(problem),
      goal_(goal),
      mean_(mean),
      plan_(problem, placement, order),
      early_(problem),
      priority_(problem.n),
      peak_(problem.d),
      never_overflows_(fits_one_device(problem)) {
  if (!problem.atomic) simulator_ = std::make_unique<sim::Simulator>(problem);
  best_.cost = never;
  restart(placement, order, transfers);
}

void PlanState::restart(const int32_t* placement, const int32_t* order,
                        std::span<const sim::PlacedTransfer> transfers) {
  plan_.assign(placement, order);
  early_.assign(plan_, transfers);
  if (goal_ == Goal::time && never_overflows_ && sim::BlockingTimer::supports(problem_))
    blocking_timer_ = std::make_unique<sim::BlockingTimer>(problem_, plan_, early_);
  else if (!problem_.atomic && goal_ == Goal::time)
    timer_ = std::make_unique<sim::IncrementalTimer>(problem_, plan_, estimate_bytes_);
  effect_ = {0, problem_.n};
  unchecked_ = 0;
  fits_ = false;
  accept(evaluate(never));
}

void PlanState::apply(const Change& change) {
  for (const auto& [unit, from, to] : change.units) plan_.place(unit, to);
  if (change.from >= 0) plan_.reorder(change.from, change.to);
  if (change.sent.transfer.tensor >= 0) early_.move(change.sent.transfer, change.sent.to);
  if (blocking_timer_) tell_timer(change);
  if (timer_) find_effect(change);
}

void PlanState::tell_timer(const Change& change) {
  blocking_timer_->begin_change();
  for (const auto& [unit, from, to] : change.units) blocking_timer_->unit_moved(unit, from, to);
  if (change.from >= 0) blocking_timer_->op_moved(change.from, change.to);
  if (change.sent.transfer.tensor >= 0) blocking_timer_->transfer_moved(change.sent.transfer);
}

void PlanState::find_effect(const Change& change) {
  effect_ = {problem_.n, -1};
  const bool uses = problem_.blocking || estimate_bytes_;
  for (const auto& moved : change.units) plan_.include_place(moved.unit, uses, effect_);
  if (change.from >= 0) plan_.include_reorder(change.from, change.to, effect_);
}

void PlanState::undo(const Change& change) {
  if (change.sent.transfer.tensor >= 0) early_.move(change.sent.transfer, change.sent.from);
  if (change.from >= 0) plan_.reorder(change.to, change.from);
  for (const auto& [unit, from, to] : change.units) plan_.place(unit, from);
}

double PlanState::evaluate(double limit) {
  if (problem_.atomic) return evaluate_atomic();
  if (blocking_timer_) {
    candidate_fits_ = true;
    return blocking_timer_->time(limit);
  }
  if (!timer_) {
    simulate();
    return evaluate_peaks();
  }
  const double makespan = timer_->time(effect_, limit, fits_);
  memory_checked_ = makespan < never && !never_overflows_ && !fits_;
  candidate_fits_ = true;
  if (!memory_checked_) return makespan;
  if (!fits_all_at_once()) simulate();
  return with_overflow(makespan);
}

double PlanState::evaluate_peaks() {
  if (goal_ == Goal::shortfall) return evaluate_shortfall();
  const double largest = largest_peak();
  candidate_value_ = with_overflow(largest);
  if (mean_ == PeakMean::none) return with_overflow(largest);
  const double mean = mean_ == PeakMean::power ? power_mean() : mean_peak();
  return with_overflow(largest + mean_peaks * mean);
}

double PlanState::evaluate_shortfall() {
  candidate_value_ = 0;
  for (int device = 0; device < problem_.d; ++device)
    candidate_value_ +=
        static_cast<double>(std::max<int64_t>(0, peak_[device] - problem_.capacity[device]));
  candidate_fits_ = candidate_value_ == 0;
  return candidate_value_ + mean_peak_in_shortfall * mean_peak();
}

// Under atomic rules persistent bytes alone count.
double PlanState::evaluate_atomic() {
  std::fill(peak_.begin(), peak_.end(), 0);
  for (int op = 0; op < problem_.n; ++op) peak_[plan_.device()[op]] += problem_.persistent[op];
  if (goal_ != Goal::time) return evaluate_peaks();
  return with_overflow(sim::run_calls(problem_, plan_.device().data()).makespan);
}

double PlanState::largest_peak() const {
  return static_cast<double>(*std::max_element(peak_.begin(), peak_.end()));
}

double PlanState::mean_peak() const {
  double sum = 0;
  for (const int64_t peak : peak_) sum += static_cast<double>(peak);
  return sum / problem_.d;
}

// Of degree 4, by operations that round alike on every machine.
double PlanState::power_mean() const {
  const double largest = largest_peak();
  if (largest == 0) return 0;
  double sum = 0;
  for (const int64_t peak : peak_) {
    const double part = static_cast<double>(peak) / largest, square = part * part;
    sum += square * square;
  }
  return largest * std::sqrt(std::sqrt(sum / problem_.d));
}

// Runs the serial decoder on the order for the peaks.
void PlanState::simulate() {
  for (int op = 0; op < problem_.n; ++op)
    priority_[op] = static_cast<float>(problem_.n - plan_.position(op));
  simulator_->run({plan_.device().data(), priority_.data()}, sim::Decoder::serial, peak_.data());
  peaks_known_ = true;
}

double PlanState::with_overflow(double value) {
  double overflow = 0;
  for (int device = 0; device < problem_.d; ++device) {
    const auto excess = static_cast<double>(peak_[device] - problem_.capacity[device]);
    overflow += std::max(0.0, excess / static_cast<double>(problem_.capacity[device]));
  }
  candidate_fits_ = overflow == 0;
  return value * overflow_penalty(overflow);
}

// Whether every device could hold all bytes that it sees in the step at once. Far cheaper than a
// simulation, and often enough; the peaks then stay zero.
bool PlanState::fits_all_at_once() {
  const auto& p = problem_;
  std::fill(peak_.begin(), peak_.end(), 0);
  peaks_known_ = false;
  bytes_.assign(p.d, 0);
  workspace_.assign(p.d, 0);
  const auto& device = plan_.device();
  const auto hold = [&](int on, int64_t bytes) { bytes_[on] = add_bytes(bytes_[on], bytes); };
  for (int op = 0; op < p.n; ++op) {
    hold(device[op], p.persistent[op]);
    workspace_[device[op]] = std::max(workspace_[device[op]], p.workspace[op]);
  }
  if (p.memory == Memory::persistent) std::fill(workspace_.begin(), workspace_.end(), 0);
  if (p.memory != Memory::persistent)
    for (int tensor = 0; tensor < p.m; ++tensor) {
      const int home = device[p.producer[tensor]];
      if (!p.resident[tensor]) hold(home, p.size[tensor]);
      int last = home;  // consumers in a row on one device share a copy; others count it again
      for (const int consumer : p.consumers_of(tensor)) {
        const int there = device[consumer];
        if (there != home && there != last) hold(there, p.size[tensor]);
        last = there;
      }
    }
  for (int d = 0; d < p.d; ++d)
    if (add_bytes(bytes_[d], workspace_[d]) > p.capacity[d]) return false;
  return true;
}

void PlanState::accept(double cost) {
  if (timer_) timer_->commit();
  if (blocking_timer_) blocking_timer_->commit();
  cost_ = cost;
  fits_ = candidate_fits_;
  if (memory_checked_ || never_overflows_)
    keep_if_best();
  else if (++unchecked_ >= patience_)
    verify_memory();
}

std::vector<int32_t> PlanState::in_the_way() const {
  if (goal_ == Goal::time) {
    if (!timer_ || problem_.blocking) return {};
    return sim::held_up(plan_, timer_->times());
  }
  if (problem_.memory == Memory::persistent) return {};
  return sim::live_when_fullest(plan_);
}

void PlanState::finish() {
  if (unchecked_ > 0) verify_memory();
}

void PlanState::verify_memory() {
  if (!fits_all_at_once()) simulate();
  unchecked_ = 0;
  with_overflow(cost_);
  if (candidate_fits_) {
    patience_ = std::min(longest_patience, patience_ * 2);
    keep_if_best();
    return;
  }
  if (patience_ <= 1) estimate_bytes_ = problem_.memory != Memory::persistent;
  patience_ = std::max<int64_t>(1, patience_ / 4);
  const std::vector<int32_t> placement = safe_placement_, order = safe_order_;
  restart(placement.data(), order.data(), {});
}

// The memory of the plan is known here.
void PlanState::keep_if_best() {
  if (fits_ && timer_ && !never_overflows_) {
    safe_placement_ = plan_.device();
    safe_order_ = plan_.order();
    if (peaks_known_) timer_->calibrate(peak_);
  }
  const double cost = goal_ == Goal::time ? cost_ : candidate_value_;
  const bool better = fits_ == best_.feasible ? cost < best_.cost : fits_;
  if (!better) return;
  best_ = {fits_, cost, plan_.device(), plan_.order(), {}};
  if (early_.any()) best_.transfers = sim::blocking_transfers(plan_, early_);
}

}  // namespace situate::search
