#include "simulation/peak_memory.h"

#include <algorithm>
#include <vector>

namespace situate::sim {

namespace {

struct Change {
  double time;
  int32_t device;
  int64_t bytes;
};

std::vector<Change> changes_of(const Problem& p, const int32_t* placement, const Timeline& timeline,
                               double makespan) {
  std::vector<Change> changes;
  const auto hold = [&](int device, double from, double to, int64_t bytes) {
    if (bytes == 0 || from == to) return;
    changes.push_back({from, device, bytes});
    changes.push_back({to, device, -bytes});
  };
  const auto &start = timeline.start, &end = timeline.end;
  for (int op = 0; op < p.n; ++op) hold(placement[op], start[op], end[op], p.workspace[op]);
  for (int tensor = 0; tensor < p.m; ++tensor) {
    if (p.size[tensor] == 0) continue;
    const int producer = p.producer[tensor], here = placement[producer];
    double last = p.output[tensor] ? makespan : end[producer];
    for (const int consumer : p.consumers_of(tensor))
      if (placement[consumer] == here) last = std::max(last, end[consumer]);
    for (int t = timeline.first_transfer(tensor); t >= 0;) {
      const auto& transfer = timeline.transfers()[t];
      last = std::max(last, end[p.n + t]);
      double there = end[p.n + t];
      for (const int consumer : p.consumers_of(tensor))
        if (placement[consumer] == transfer.target) there = std::max(there, end[consumer]);
      hold(transfer.target, start[p.n + t], there, p.size[tensor]);
      t = transfer.next_of_tensor;
    }
    if (!p.resident[tensor]) hold(here, start[producer], last, p.size[tensor]);
  }
  return changes;
}

}  // namespace

void peak_over_time(const Problem& p, const int32_t* placement, const Timeline& timeline,
                    double makespan, LiveBytes& bytes) {
  auto changes = changes_of(p, placement, timeline, makespan);
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.time < b.time; });
  for (size_t i = 0; i < changes.size();) {
    const double now = changes[i].time;
    for (; i < changes.size() && changes[i].time == now; ++i)
      bytes.add(changes[i].device, changes[i].bytes);
    bytes.note_peaks();
  }
}

}  // namespace situate::sim
