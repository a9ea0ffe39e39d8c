// The best order of the ops and transfers of one placement, where transfers are blocking.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.h"
#include "simulation/blocking/early_transfers.h"

namespace situate::search {

enum class ItemGoal { time, memory, fit };

// The search looks for orders with a score below (excess, value): bytes above all capacities in
// sum, then seconds, or bytes of the largest peak; to `fit` all orders have the value `constant`.
struct ItemLimits {
  int64_t excess = 0;
  double value = 0;
  double constant = 0;
  int64_t steps = 0;  // items that may be tried
  double seconds = 0;
};

// Without ops no order was found. `exhausted` is true where there is none that is better.
struct ItemOrder {
  bool exhausted = true;
  int64_t steps = 0;
  std::vector<int32_t> ops;
  std::vector<sim::PlacedTransfer> transfers;
};

// Depth-first branch and bound over the orders in which every item follows what it depends on. The
// serial decoder makes of these orders all schedules that any decoder makes of the placement. Two
// ways to have taken the same items are compared, and one that is nowhere better is left.
ItemOrder best_item_order(const problem::Problem& problem, std::span<const int32_t> placement,
                          ItemGoal goal, const ItemLimits& limits);

}  // namespace situate::search
