#include "simulation/blocking/blocking_items.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace situate::sim {

namespace {
constexpr float least = std::numeric_limits<float>::lowest();
}  // namespace

BlockingItems::BlockingItems(const Problem& problem)
    : problem_(problem), first_(problem.n + 1), best_(problem.d + 1, least) {
  for (int tensor = 0; tensor < problem.m; ++tensor) {
    for (const int consumer : problem.consumers_of(tensor))
      of_tensor_.items.push_back({problem.signal[tensor], static_cast<uint32_t>(consumer)});
    of_tensor_.close();
  }
  for (int op = 0; op < problem.n; ++op) {
    for (const int tensor : problem.outputs_of(op)) {
      const auto readers = of_tensor_.row(tensor);
      of_op_.items.insert(of_op_.items.end(), readers.begin(), readers.end());
      if (!problem.signal[tensor]) {
        in_order_ &= sent_by_.items.empty() || sent_by_.items.back() < tensor;
        sent_by_.items.push_back(tensor);
      } else if (problem.synchronisation > 0) {
        timed_.items.push_back(tensor);
      }
    }
    of_op_.close();
    sent_by_.close();
    timed_.close();
  }
  priority_.resize(Timeline::most_items(problem));
}

void BlockingItems::collect(const Decision& decision, Timeline& timeline) {
  std::copy_n(decision.priority, problem_.n, priority_.begin());
  for (int op = 0; op < problem_.n; ++op) {
    first_[op] = timeline.count();
    for (const int tensor : sent_by_.row(op)) add_transfers(tensor, decision, timeline);
  }
  first_[problem_.n] = timeline.count();
  count_ = timeline.items();
  number_items(timeline);
  order_.sort({priority_.data(), sequence_.size()}, sequence_);
  for (const int tensor : timed_.items) add_transfers(tensor, decision, timeline);
}

// One transfer to each device beside the producer's that has a consumer, 64 devices at a time. The
// first one is written in any case and stays if it is needed.
void BlockingItems::add_transfers(int tensor, const Decision& decision, Timeline& timeline) {
  const int here = decision.placement[problem_.producer[tensor]];
  for (int base = 0; base < problem_.d; base += 64) {
    uint64_t targets = 0;
    for (const int consumer : problem_.consumers_of(tensor)) {
      const int there = decision.placement[consumer];
      const bool counts = (there != here) & ((there & ~63) == base);
      targets |= static_cast<uint64_t>(counts) << (there & 63);
      float& best = best_[counts ? there : problem_.d];
      best = std::max(best, decision.priority[consumer]);
    }
    do {
      const int target = targets ? base + std::countr_zero(targets) : here;
      const size_t place = static_cast<size_t>(tensor) * problem_.d + target;
      const float best = std::exchange(best_[target], least);
      priority_[timeline.items()] =
          decision.transfer_priority ? decision.transfer_priority[place] : best;
      timeline.add(tensor, here, target, targets != 0);
      targets &= targets - 1;
    } while (targets);
  }
}

// Of one priority an op goes before a transfer, then the lower index first.
void BlockingItems::number_items(const Timeline& timeline) {
  const auto known = static_cast<int>(sequence_.size());
  sequence_.resize(count_);
  if (known < count_ || !in_order_) std::iota(sequence_.begin(), sequence_.end(), 0);
  if (in_order_) return;
  const auto transfers = timeline.transfers();
  std::sort(sequence_.begin() + problem_.n, sequence_.end(), [&](int a, int b) {
    const auto &x = transfers[a - problem_.n], &y = transfers[b - problem_.n];
    return std::tie(x.tensor, x.target) < std::tie(y.tensor, y.target);
  });
}

}  // namespace situate::sim
