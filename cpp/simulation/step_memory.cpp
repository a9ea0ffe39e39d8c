#include "simulation/step_memory.h"

#include <algorithm>
#include <utility>

namespace situate::sim {

StepMemory::StepMemory(const Problem& problem)
    : problem_(problem), line_start_(problem.d + 1), last_use_(problem.d, -1) {
  for (int tensor = 0; tensor < problem.m; ++tensor)
    if (problem.size[tensor] > 0) sized_.push_back(tensor);
  for (int op = 0; op < problem.n; ++op)
    if (problem.workspace[op] > 0) with_workspace_.push_back(op);
}

void StepMemory::raise(const int32_t* placement, const Timeline& timeline, int64_t* peak) {
  describe(placement, timeline);
  line_up(timeline.taken);
  free_after_last_use(placement, timeline);
  for (int device = 0; device < problem_.d; ++device) peak[device] = peak_of(device, peak[device]);
}

void StepMemory::describe(const int32_t* placement, const Timeline& timeline) {
  const auto& p = problem_;
  const size_t count = timeline.items();
  use_.resize(count);
  place_.resize(count + 1);
  for (int op = 0; op < p.n; ++op) use_[op] = {placement[op], placement[op], p.start_bytes[op]};
  for (size_t t = 0; t < timeline.transfers().size(); ++t) {
    const auto& transfer = timeline.transfers()[t];
    use_[p.n + t] = {transfer.source, transfer.target, p.size[transfer.tensor]};
  }
}

// Splits the items by device.
void StepMemory::line_up(const std::vector<int32_t>& items) {
  std::vector<int32_t>& next = last_use_;  // free until the tensors' turn
  std::fill(next.begin(), next.end(), 0);
  for (const int item : items) {
    ++next[use_[item].source];
    next[use_[item].target] += use_[item].source != use_[item].target;
  }
  line_start_[0] = 0;
  for (int device = 0; device < problem_.d; ++device)
    line_start_[device + 1] =
        line_start_[device] + std::exchange(next[device], line_start_[device]);
  const int nowhere = line_start_.back();
  line_.resize(nowhere + 1);
  for (const int item : items) {
    const auto& use = use_[item];
    const bool twice = use.source != use.target;
    line_[next[use.source]++] = item;
    line_[twice ? next[use.target] : nowhere] = item;
    next[use.target] += twice;
  }
  std::fill(next.begin(), next.end(), -1);
}

// A tensor goes from its producer's device after its consumers there and its transfers, from
// another after its consumers there.
void StepMemory::free_after_last_use(const int32_t* placement, const Timeline& timeline) {
  const auto& p = problem_;
  freed_.assign(line_.size(), 0);
  const auto nowhere = static_cast<int>(use_.size());
  for (int device = 0; device < p.d; ++device)
    for (int i = line_start_[device]; i < line_start_[device + 1]; ++i)
      place_[use_[line_[i]].source == device ? line_[i] : nowhere] = i;
  for (const int tensor : sized_) {
    const int producer = p.producer[tensor], here = placement[producer];
    last_use_[here] = place_[producer];
    for (const int consumer : p.consumers_of(tensor)) {
      int32_t& last = last_use_[placement[consumer]];
      last = std::max(last, place_[consumer]);
    }
    int last = std::exchange(last_use_[here], -1);
    for (int t = timeline.first_transfer(tensor); t >= 0;) {
      const auto& transfer = timeline.transfers()[t];
      last = std::max(last, place_[p.n + t]);
      freed_[std::exchange(last_use_[transfer.target], -1)] += p.size[tensor];
      t = transfer.next_of_tensor;
    }
    freed_[last] += p.resident[tensor] || p.output[tensor] ? 0 : p.size[tensor];
  }
  for (const int op : with_workspace_) freed_[place_[op]] += p.workspace[op];
}

int64_t StepMemory::peak_of(int device, int64_t persistent) const {
  int64_t used = persistent, peak = persistent;
  for (int i = line_start_[device]; i < line_start_[device + 1]; ++i) {
    const auto& use = use_[line_[i]];
    used += use.target == device ? use.bytes : 0;
    peak = std::max(peak, used);
    used -= freed_[i];
  }
  return peak;
}

}  // namespace situate::sim
