// When every op runs and every transfer is under way: what a decoder makes of a decision.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.h"

namespace situate::sim {

using problem::Problem;

struct Decision {
  const int32_t* placement;                  // n
  const float* priority;                     // n
  const float* transfer_priority = nullptr;  // m x d, or null: the best consumer's priority
};

struct Transfer {
  int32_t tensor, source, target;
  int32_t waiting;         // consumers on the target that have not ended
  int32_t next_of_tensor;  // another transfer of the same tensor, -1 at the end
};

// Items are ops and transfers: op i is item i, transfer t item ops + t.
class Timeline {
 public:
  explicit Timeline(const Problem& problem)
      : start(most_items(problem)),
        end(start.size()),
        ops_(problem.n),
        first_transfer_(problem.m),
        transfers_(start.size() - problem.n) {}

  // Items of any placement at most, and one more that add() may write in vain.
  static size_t most_items(const Problem& problem) {
    size_t most = static_cast<size_t>(problem.n) + 1;
    for (int tensor = 0; tensor < problem.m; ++tensor)
      most += std::min<size_t>(problem.consumers_of(tensor).size(), problem.d - 1);
    return most;
  }

  void clear() {
    count_ = 0;
    taken.clear();
    std::fill(first_transfer_.begin(), first_transfer_.end(), -1);
  }
  // Adds a transfer of a tensor to the front of the tensor's list and returns its index. Its times
  // are yet to be set.
  int add(int tensor, int source, int target) {
    int32_t& first = first_transfer_[tensor];
    transfers_[count_] = {tensor, source, target, 0, first};
    return first = static_cast<int32_t>(count_++);
  }
  // Adds the only transfer of a tensor if `condition`, without a branch.
  void add_only(int tensor, int source, int target, bool condition) {
    transfers_[count_] = {tensor, source, target, 0, -1};
    first_transfer_[tensor] = static_cast<int32_t>(count_) | -static_cast<int32_t>(!condition);
    count_ += condition;
  }
  std::span<Transfer> transfers() { return {transfers_.data(), count_}; }
  std::span<const Transfer> transfers() const { return {transfers_.data(), count_}; }
  // The last transfer added of a tensor, -1 for none.
  int first_transfer(int tensor) const { return first_transfer_[tensor]; }

  int count() const { return static_cast<int>(count_); }
  int items() const { return static_cast<int>(ops_ + count_); }

  std::vector<double> start, end;  // of every item, with room for more
  std::vector<int32_t> taken;      // all items but signals in the decoder's order

 private:
  size_t ops_, count_ = 0;
  std::vector<int32_t> first_transfer_;  // of each tensor
  std::vector<Transfer> transfers_;
};

}  // namespace situate::sim
