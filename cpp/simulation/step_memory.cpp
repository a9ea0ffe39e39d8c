#include "simulation/step_memory.h"

#include <algorithm>
#include <utility>

namespace situate::sim {

StepMemory::StepMemory(const Problem& problem)
    : problem_(problem),
      place_(Timeline::most_items(problem)),
      last_use_(problem.d, -1),
      used_(problem.d) {
  for (int tensor = 0; tensor < problem.m; ++tensor)
    if (problem.size[tensor] > 0) sized_.push_back(tensor);
  for (int op = 0; op < problem.n; ++op)
    if (problem.workspace[op] > 0) with_workspace_.push_back(op);
}

void StepMemory::raise(const int32_t* placement, const Timeline& timeline, int64_t* peak) {
  take_steps(placement, timeline);
  free_after_last_use(timeline);
  std::copy_n(peak, problem_.d, used_.begin());
  for (const auto& step : step_) {
    const int64_t now = used_[step.target] += step.added;
    peak[step.target] = std::max(peak[step.target], now);
    used_[step.source] -= step.freed;
  }
}

void StepMemory::take_steps(const int32_t* placement, const Timeline& timeline) {
  const auto& p = problem_;
  for (int op = 0; op < p.n; ++op) place_[op].source = placement[op];
  step_.resize(timeline.taken.size());
  for (size_t i = 0; i < step_.size(); ++i) {
    const int item = timeline.taken[i];
    place_[item].step = static_cast<int32_t>(i);
    if (item < p.n) {
      step_[i] = {placement[item], placement[item], p.start_bytes[item], 0};
    } else {
      const auto& transfer = timeline.transfers()[item - p.n];
      step_[i] = {transfer.source, transfer.target, p.size[transfer.tensor], 0};
    }
  }
}

// A tensor goes from its producer's device after its consumers there and its transfers, from
// another after its consumers there.
void StepMemory::free_after_last_use(const Timeline& timeline) {
  const auto& p = problem_;
  for (const int tensor : sized_) {
    const auto [made, here] = place_[p.producer[tensor]];
    last_use_[here] = made;
    for (const int consumer : p.consumers_of(tensor)) {
      int32_t& last = last_use_[place_[consumer].source];
      last = std::max(last, place_[consumer].step);
    }
    int last = std::exchange(last_use_[here], -1);
    for (int t = timeline.first_transfer(tensor); t >= 0;) {
      const auto& transfer = timeline.transfers()[t];
      last = std::max(last, place_[p.n + t].step);
      step_[std::exchange(last_use_[transfer.target], -1)].freed += p.size[tensor];
      t = transfer.next_of_tensor;
    }
    step_[last].freed += p.resident[tensor] || p.output[tensor] ? 0 : p.size[tensor];
  }
  for (const int op : with_workspace_) step_[place_[op].step].freed += p.workspace[op];
}

}  // namespace situate::sim
