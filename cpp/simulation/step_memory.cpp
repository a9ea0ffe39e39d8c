#include "simulation/step_memory.h"

#include <algorithm>
#include <numeric>
#include <tuple>
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
  if (!problem_.blocking) sort_by_start(timeline);
  line_up(problem_.blocking ? timeline.taken : sorted_);
  if (problem_.blocking) order_ties(timeline);
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

// All items by start, end and dependency.
void StepMemory::sort_by_start(const Timeline& timeline) {
  const int n = problem_.n;
  sorted_.resize(use_.size());
  std::iota(sorted_.begin(), sorted_.end(), 0);
  std::erase_if(sorted_, [&](int item) {
    return item >= n && problem_.signal[timeline.transfers()[item - n].tensor];
  });
  const auto times = [&](int item) { return std::pair(timeline.start[item], timeline.end[item]); };
  std::sort(sorted_.begin(), sorted_.end(), [&](int a, int b) {
    return times(a) != times(b) ? times(a) < times(b) : goes_first(a, b, timeline);
  });
}

// Splits the items by device. With blocking transfers a device does one thing at a time, so that
// the order in which a decoder took its items is that of their starts and ends.
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

// Items that take no time and stand side by side at one instant go in the order of dependency.
void StepMemory::order_ties(const Timeline& timeline) {
  const auto tie = [&](int a, int b) {
    return (timeline.start[a] == timeline.end[b]) & (timeline.end[a] == timeline.end[b]) &
           (timeline.start[b] == timeline.end[b]);
  };
  ties_.resize(line_.size());
  size_t ties = 0;
  for (int device = 0; device < problem_.d; ++device)
    for (int i = line_start_[device] + 1; i < line_start_[device + 1]; ++i) {
      ties_[ties] = i;
      ties += tie(line_[i - 1], line_[i]);
    }
  for (size_t k = 0; k < ties; ++k)
    for (size_t j = k, i = ties_[k]; goes_first(line_[i], line_[i - 1], timeline); --j, --i) {
      std::swap(line_[i], line_[i - 1]);
      if (j == 0 || ties_[j - 1] + 1 != ties_[j]) break;
    }
}

// By the graph's order, a transfer just after its producer.
bool StepMemory::goes_first(int a, int b, const Timeline& timeline) const {
  const auto key = [&](int item) {
    if (item < problem_.n) return std::tuple(problem_.place_in_order[item], -1, -1);
    const auto& transfer = timeline.transfers()[item - problem_.n];
    const int place = problem_.place_in_order[problem_.producer[transfer.tensor]];
    return std::tuple(place, transfer.tensor, transfer.target);
  };
  return key(a) < key(b);
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
