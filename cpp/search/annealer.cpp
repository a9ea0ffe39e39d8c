#include "search/annealer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "simulation/atomic_calls.h"

namespace situate::search {

using problem::add_bytes;
using problem::Memory;
using sim::Decoder;
using sim::run_calls;

namespace {

constexpr double never = std::numeric_limits<double>::infinity();
// The clock is asked after so many steps, or steps on so many ops: in a large network one takes as
// long as a hundred in a small one.
constexpr int64_t steps_between_questions = 64, ops_between_questions = 500'000;

// A plan over capacity costs this much more at once, and more with every byte.
constexpr double overflow_cost = 0.05;
constexpr double overflow_slope = 10;

constexpr int64_t longest_patience = 1024;

bool holds_everything(const Problem& p) {
  int64_t bytes = 0;
  for (int op = 0; op < p.n; ++op) bytes += p.persistent[op];
  if (p.memory != Memory::persistent) {
    bytes += p.workspace.empty() ? 0 : *std::max_element(p.workspace.begin(), p.workspace.end());
    for (int tensor = 0; tensor < p.m; ++tensor) bytes += p.size[tensor];
  }
  return bytes <= *std::min_element(p.capacity.begin(), p.capacity.end());
}

}  // namespace

Annealer::Annealer(const Problem& problem, Goal goal, uint64_t seed, const int32_t* placement,
                   const int32_t* order)
    : problem_(problem),
      goal_(goal),
      random_(seed),
      priority_(problem.n),
      peak_(problem.d),
      roomy_(holds_everything(problem)) {
  if (!problem.atomic) simulator_ = std::make_unique<Simulator>(problem);
  best_.cost = never;
  restart(placement, order);
}

void Annealer::restart(const int32_t* placement, const int32_t* order) {
  decision_ = std::make_unique<LinearDecision>(problem_, placement, order);
  const bool linear = !problem_.atomic && goal_ == Goal::time;
  if (linear) timer_ = std::make_unique<LinearTimer>(problem_, *decision_, count_bytes_);
  unverified_ = 0;
  fits_ = false;
  accept(evaluate(0, never));
}

void Annealer::run(double temperature, int64_t evaluations, const std::function<bool()>& ended) {
  const int64_t steps =
      std::clamp<int64_t>(ops_between_questions / problem_.n, 1, steps_between_questions);
  for (int64_t i = 0; i < evaluations; ++i) {
    if (i % steps == 0 && ended()) break;
    ++evaluations_;
    const int first = decision_->propose(random_, *blocks_);
    if (first < 0) {
      decision_->undo();
      continue;
    }
    const double limit = cost_ - temperature * std::log(random_.unit() + 1e-300);
    const double cost = evaluate(first, limit);
    if (cost <= limit && (cost < never || cost_ == never))
      accept(cost);
    else
      decision_->undo();
  }
  if (unverified_ > 0) verify();
}

double Annealer::typical_change(int64_t evaluations) {
  std::vector<double> changes;
  for (int64_t i = 0; i < evaluations; ++i) {
    const int first = decision_->propose(random_, *blocks_);
    const double cost = first < 0 ? cost_ : evaluate(first, never);
    decision_->undo();
    ++evaluations_;
    if (cost != cost_ && cost < never && cost_ < never) changes.push_back(std::abs(cost - cost_));
  }
  if (changes.empty()) return 0;
  const auto middle = changes.begin() + changes.size() / 2;
  std::nth_element(changes.begin(), middle, changes.end());
  return *middle;
}

double Annealer::evaluate(int first, double limit) {
  if (problem_.atomic) {
    std::fill(peak_.begin(), peak_.end(), 0);
    for (int op = 0; op < problem_.n; ++op)
      peak_[decision_->device()[op]] += problem_.persistent[op];
    return with_overflow(goal_ == Goal::memory
                             ? largest_peak()
                             : run_calls(problem_, decision_->device().data()).makespan);
  }
  if (!timer_) {
    simulate();
    return with_overflow(largest_peak());
  }
  const double makespan = timer_->time(first, limit, fits_);
  checked_ = makespan < never && !roomy_ && !fits_;
  candidate_fits_ = true;
  if (!checked_) return makespan;
  if (!fits_anyway()) simulate();
  return with_overflow(makespan);
}

double Annealer::largest_peak() const {
  return static_cast<double>(*std::max_element(peak_.begin(), peak_.end()));
}

// Runs the serial decoder on the order for the peaks.
void Annealer::simulate() {
  for (int op = 0; op < problem_.n; ++op)
    priority_[op] = static_cast<float>(problem_.n - decision_->position(op));
  simulator_->run({decision_->device().data(), priority_.data()}, Decoder::serial, peak_.data());
  peaks_known_ = true;
}

double Annealer::with_overflow(double value) {
  double overflow = 0;
  for (int device = 0; device < problem_.d; ++device) {
    const auto excess = static_cast<double>(peak_[device] - problem_.capacity[device]);
    overflow += std::max(0.0, excess / static_cast<double>(problem_.capacity[device]));
  }
  candidate_fits_ = overflow == 0;
  return candidate_fits_ ? value : value * (1 + overflow_cost + overflow_slope * overflow);
}

// Whether the devices hold all they ever see, even at once; then the peaks stay zero.
bool Annealer::fits_anyway() {
  const auto& p = problem_;
  std::fill(peak_.begin(), peak_.end(), 0);
  peaks_known_ = false;
  bytes_.assign(p.d, 0);
  workspace_.assign(p.d, 0);
  const auto& device = decision_->device();
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
      int last = home;
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

void Annealer::accept(double cost) {
  if (timer_) timer_->commit();
  cost_ = cost;
  fits_ = candidate_fits_;
  if (checked_ || roomy_)
    keep();
  else if (++unverified_ >= patience_)
    verify();
}

void Annealer::verify() {
  if (!fits_anyway()) simulate();
  unverified_ = 0;
  with_overflow(cost_);
  if (candidate_fits_) {
    patience_ = std::min(longest_patience, patience_ * 2);
    keep();
    return;
  }
  if (patience_ <= 1) count_bytes_ = problem_.memory != Memory::persistent;
  patience_ = std::max<int64_t>(1, patience_ / 4);
  const std::vector<int32_t> placement = safe_placement_, order = safe_order_;
  restart(placement.data(), order.data());
}

// Notes a decision whose memory is known.
void Annealer::keep() {
  if (fits_ && timer_ && !roomy_) {
    safe_placement_ = decision_->device();
    safe_order_ = decision_->order();
    if (peaks_known_) timer_->calibrate(peak_);
  }
  const bool better = fits_ == best_.feasible ? cost_ < best_.cost : fits_;
  if (better) best_ = {fits_, cost_, decision_->device(), decision_->order()};
}

}  // namespace situate::search
