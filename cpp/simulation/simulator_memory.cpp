// Peaks of memory that are computed from a finished schedule: for blocking transfers, and for
// memory that is measured per step.
#include <algorithm>
#include <tuple>

#include "simulation/simulator.h"

namespace situate::sim {

// Adds up the bytes that appear and vanish at each instant. What appears and vanishes at the same
// instant does not count.
void Simulator::peak_over_time(double makespan, int64_t* peak) {
  const auto& p = problem_;
  struct Change {
    double time;
    int32_t device;
    int64_t bytes;
  };
  std::vector<Change> changes;
  const auto hold = [&](int device, double from, double to, int64_t bytes) {
    if (bytes == 0 || from == to) return;
    changes.push_back({from, device, bytes});
    changes.push_back({to, device, -bytes});
  };
  for (int op = 0; op < p.n; ++op)
    hold(decision_.placement[op], start_[op], end_[op], p.workspace[op]);
  for (int tensor = 0; tensor < p.m; ++tensor) {
    if (p.size[tensor] == 0) continue;
    const int producer = p.producer[tensor], here = decision_.placement[producer];
    double last = p.output[tensor] ? makespan : end_[producer];
    for (const int consumer : p.consumers_of(tensor))
      if (decision_.placement[consumer] == here) last = std::max(last, end_[consumer]);
    for (int t = first_transfer_[tensor]; t >= 0; t = transfers_[t].next_of_tensor) {
      const auto& transfer = transfers_[t];
      last = std::max(last, transfer.end);
      double there = transfer.end;
      for (const int consumer : p.consumers_of(tensor))
        if (decision_.placement[consumer] == transfer.target)
          there = std::max(there, end_[consumer]);
      hold(transfer.target, transfer.start, there, p.size[tensor]);
    }
    if (!p.resident[tensor]) hold(here, start_[producer], last, p.size[tensor]);
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.time < b.time; });
  for (size_t i = 0; i < changes.size();) {
    const double now = changes[i].time;
    for (; i < changes.size() && changes[i].time == now; ++i)
      used_[changes[i].device] += changes[i].bytes;
    for (int device = 0; device < p.d; ++device)
      peak[device] = std::max(peak[device], used_[device]);
  }
}

// REGAL's measure: the bytes in use after every op and transfer, in the order of their starts, ends
// and dependencies.
void Simulator::peak_per_step(int64_t* peak) {
  const auto& p = problem_;
  struct Step {
    double start, end;
    int32_t place, tensor, target, id;  // op: tensor -1; transfer: its producer's place
  };
  std::vector<Step> steps;
  for (int op = 0; op < p.n; ++op)
    steps.push_back({start_[op], end_[op], p.place_in_order[op], -1, -1, op});
  for (size_t t = 0; t < transfers_.size(); ++t) {
    const auto& x = transfers_[t];
    if (p.signal[x.tensor]) continue;
    const int place = p.place_in_order[p.producer[x.tensor]];
    steps.push_back({x.start, x.end, place, x.tensor, x.target, static_cast<int32_t>(t)});
  }
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return std::tie(a.start, a.end, a.place, a.tensor, a.target) <
           std::tie(b.start, b.end, b.place, b.tensor, b.target);
  });
  for (auto& transfer : transfers_) transfer.waiting = 0;
  for (int tensor = 0; tensor < p.m; ++tensor) {
    const int here = decision_.placement[p.producer[tensor]];
    int holders = 1;  // the producer itself
    for (int t = first_transfer_[tensor]; t >= 0; t = transfers_[t].next_of_tensor) ++holders;
    for (const int consumer : p.consumers_of(tensor)) {
      const int there = decision_.placement[consumer];
      if (there == here) {
        ++holders;
        continue;
      }
      for (int t = first_transfer_[tensor]; t >= 0; t = transfers_[t].next_of_tensor)
        if (transfers_[t].target == there) ++transfers_[t].waiting;
    }
    holders_[tensor] = holders;
  }
  const auto note = [&](int device) { peak[device] = std::max(peak[device], used_[device]); };
  for (const auto& step : steps) {
    if (step.tensor >= 0) {
      used_[step.target] += p.size[step.tensor];
      note(step.target);
      free_if_done(step.tensor);
      continue;
    }
    const int device = decision_.placement[step.id];
    used_[device] += p.start_bytes[step.id];
    note(device);
    used_[device] -= p.workspace[step.id];
    for (const int tensor : p.outputs_of(step.id)) free_if_done(tensor);
    free_inputs<true>(step.id);
  }
}

}  // namespace situate::sim
