#include "simulation/blocking/early_transfers.h"

#include <algorithm>

#include "simulation/blocking/blocking_transfers.h"

namespace situate::sim {

EarlyTransfers::EarlyTransfers(const Problem& problem) : devices_(problem.d) {
  if (!problem.blocking) return;
  count_.resize(problem.n);
  transfers_.resize(static_cast<size_t>(problem.n) * most);
  anchor_.assign(static_cast<size_t>(problem.m) * problem.d, none);
}

EarlyTransfers::Place EarlyTransfers::place_of(const Transfer& transfer) const {
  const int anchor = anchor_of(transfer);
  if (anchor == none) return {};
  const auto all = before(anchor);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Transfer& other) {
    return other.tensor == transfer.tensor && other.target == transfer.target;
  });
  return {anchor, static_cast<int32_t>(found - all.begin())};
}

void EarlyTransfers::move(const Transfer& transfer, const Place& to) {
  const Place from = place_of(transfer);
  if (from.anchor != none) {
    Transfer* const first = transfers_.data() + static_cast<size_t>(from.anchor) * most;
    std::copy(first + from.turn + 1, first + count_[from.anchor], first + from.turn);
    --count_[from.anchor];
    --total_;
  }
  anchor_[index(transfer)] = to.anchor;
  if (to.anchor == none) return;
  Transfer* const first = transfers_.data() + static_cast<size_t>(to.anchor) * most;
  const int turn = std::min<int>(to.turn, count_[to.anchor]);
  std::copy_backward(first + turn, first + count_[to.anchor], first + count_[to.anchor] + 1);
  first[turn] = transfer;
  ++count_[to.anchor];
  ++total_;
}

void EarlyTransfers::assign(const OrderedPlacement& plan,
                            std::span<const PlacedTransfer> transfers) {
  std::fill(count_.begin(), count_.end(), 0);
  std::fill(anchor_.begin(), anchor_.end(), none);
  total_ = 0;
  if (transfers.empty()) return;
  const auto instant = instant_tensors(plan.problem());
  for (const auto& [tensor, target, place] : transfers) {
    if (instant[tensor] || place >= first_consumer(plan, {tensor, target})) continue;
    const int anchor = plan.order()[place];
    if (!full(anchor)) move({tensor, target}, {anchor, count_[anchor]});
  }
}

int first_consumer(const OrderedPlacement& plan, const EarlyTransfers::Transfer& transfer) {
  int first = plan.problem().n;
  for (const int consumer : plan.problem().consumers_of(transfer.tensor))
    if (plan.device()[consumer] == transfer.target)
      first = std::min(first, plan.position(consumer));
  return first;
}

}  // namespace situate::sim
