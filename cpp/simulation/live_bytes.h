// The bytes in use on every device while the items of a schedule begin and end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simulation/timeline.h"

namespace situate::sim {

class LiveBytes {
 public:
  explicit LiveBytes(const Problem& problem)
      : problem_(problem), holders_(problem.m), used_(problem.d), peak_(problem.d) {}

  // Begins with the persistent bytes of a placement (n), which must live as long as it is used.
  void reset(const int32_t* placement) {
    placement_ = placement;
    std::fill(used_.begin(), used_.end(), 0);
    for (int op = 0; op < problem_.n; ++op) used_[placement[op]] += problem_.persistent[op];
    peak_ = used_;
  }

  void add(int device, int64_t bytes) { used_[device] += bytes; }
  void note_peak(int device) { peak_[device] = std::max(peak_[device], used_[device]); }
  void note_peaks() {
    for (int device = 0; device < problem_.d; ++device) note_peak(device);
  }
  const std::vector<int64_t>& peak() const { return peak_; }

  // A tensor stays on its producer's device until as many holders have dropped it.
  void set_holders(int tensor, int holders) { holders_[tensor] = holders; }
  void drop(int tensor) {
    if (--holders_[tensor] == 0 && !problem_.resident[tensor] && !problem_.output[tensor])
      used_[placement_[problem_.producer[tensor]]] -= problem_.size[tensor];
  }
  // Lets go of what an op has read, on its device; counts down Transfer::waiting.
  void drop_inputs(int op, Timeline& timeline);

 private:
  const Problem& problem_;
  const int32_t* placement_ = nullptr;
  std::vector<int32_t> holders_;  // m
  std::vector<int64_t> used_, peak_;
};

inline void LiveBytes::drop_inputs(int op, Timeline& timeline) {
  const int here = placement_[op];
  for (const int tensor : problem_.inputs_of(op)) {
    if (problem_.size[tensor] == 0) continue;
    if (placement_[problem_.producer[tensor]] == here) {
      drop(tensor);
      continue;
    }
    int transfer = timeline.first_transfer(tensor);
    while (timeline.transfers()[transfer].target != here)
      transfer = timeline.transfers()[transfer].next_of_tensor;
    if (--timeline.transfers()[transfer].waiting == 0) used_[here] -= problem_.size[tensor];
  }
}

}  // namespace situate::sim
