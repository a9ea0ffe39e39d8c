#include "simulation/incremental/sends.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace situate::sim {

Sends::Sends(const OrderedPlacement& plan)
    : plan_(plan), next_there_(plan.problem().inputs.size()) {
  const Problem& p = plan.problem();
  reader_.reserve(p.inputs.size());
  for (int op = 0; op < p.n; ++op)
    reader_.insert(reader_.end(), p.input_start[op + 1] - p.input_start[op], op);
}

std::span<const Sends::Send> Sends::of(int op) {
  const Problem& p = plan_.problem();
  sends_.clear();
  for (const int tensor : p.outputs_of(op))
    if (!p.blocking || p.signal[tensor]) add(tensor, plan_.device()[op]);
  if (sends_.size() > 1)
    std::sort(sends_.begin(), sends_.end(), [](const Send& a, const Send& b) {
      return std::tie(a.first_use, a.tensor, a.target) < std::tie(b.first_use, b.tensor, b.target);
    });
  return sends_;
}

// Adds the transfers of a tensor from its device, one for each other device that reads it.
void Sends::add(int tensor, int device) {
  const Problem& p = plan_.problem();
  const size_t first_of_tensor = sends_.size();
  for (int i = p.consumer_start[tensor]; i < p.consumer_start[tensor + 1]; ++i) {
    const int consumer = p.consumers[i], target = plan_.device()[consumer];
    if (target == device) continue;
    const int use = plan_.position(consumer), input = p.place_in_inputs[i];
    size_t s = first_of_tensor;
    while (s < sends_.size() && sends_[s].target != target) ++s;
    if (s == sends_.size()) sends_.push_back({use, tensor, target, -1});
    sends_[s].first_use = std::min(sends_[s].first_use, use);
    next_there_[input] = std::exchange(sends_[s].input, input);
  }
}

}  // namespace situate::sim
