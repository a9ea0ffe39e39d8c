#include "sharding/branching/halves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace situate::sharding {

namespace {

// Share of the gap below which the reduced cost of a strategy counts as small.
constexpr double kSmall = 0.1;

// Of the ways, the share that divides by cost.
constexpr double kByCost = 0.6;

struct Split {
  double score;
  int op;
  std::vector<uint8_t> first;  // by strategy of the op: it is in the first half
};

// Those of largest scores.
std::vector<Split> best(std::vector<Split> splits, int most) {
  std::stable_sort(splits.begin(), splits.end(),
                   [](const Split& a, const Split& b) { return a.score > b.score; });
  if (static_cast<int>(splits.size()) > most) splits.erase(splits.begin() + most, splits.end());
  return splits;
}

class Splits {
 public:
  Splits(const Relaxation& relaxation, double gap)
      : instance_(relaxation.instance()),
        reduced_(relaxation.messages().reduced_costs()),
        price_sum_(instance_.times() + 1),
        small_(kSmall * gap) {
    const auto& price = relaxation.messages().best_prices();
    std::partial_sum(price.begin(), price.end(), price_sum_.begin() + 1);
  }

  std::vector<Split> ways(int most) {
    for (int op = 0; op < instance_.ops(); ++op) {
      if (instance_.strategies(op) == 1) continue;
      split_by_memory(op);
      split_by_cost(op);
    }
    const int by_cost = std::min(static_cast<int>(kByCost * most), static_cast<int>(cost_.size()));
    std::vector<Split> splits = best(std::move(memory_), most - by_cost);
    for (Split& split : best(std::move(cost_), most - static_cast<int>(splits.size())))
      splits.push_back(std::move(split));
    return splits;
  }

 private:
  // Strategies with small reduced costs, the least first.
  std::vector<int> small(int op) const {
    const double* reduced = &reduced_[instance_.first(op)];
    std::vector<int> order;
    for (int x = 0; x < instance_.strategies(op); ++x)
      if (reduced[x] <= small_) order.push_back(x);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return reduced[a] < reduced[b]; });
    return order;
  }

  // The price of the memory of each strategy.
  std::vector<double> rents(int op) const {
    std::vector<double> rent(instance_.strategies(op));
    for (const Part& part : instance_.parts(op)) {
      const double price = price_sum_[part.end] - price_sum_[part.begin];
      if (price == 0) continue;
      for (size_t x = 0; x < rent.size(); ++x)
        rent[x] += price * static_cast<double>(part.usage[x]);
    }
    return rent;
  }

  // Divides in the middle between the rents of those with small reduced costs.
  void split_by_memory(int op) {
    const std::vector<double> rent = rents(op);
    const std::vector<int> order = small(op);
    if (order.empty()) return;
    double least = rent[order[0]], most = least;
    for (const int x : order) {
      least = std::min(least, rent[x]);
      most = std::max(most, rent[x]);
    }
    if (most <= least) return;
    std::vector<uint8_t> first(rent.size());
    for (size_t x = 0; x < rent.size(); ++x) first[x] = rent[x] <= (least + most) / 2;
    memory_.push_back({most - least, op, std::move(first)});
  }

  // Ops with many neighbours and many strategies of small reduced costs come first.
  void split_by_cost(int op) {
    const std::vector<int> order = small(op);
    if (order.size() < 2) return;
    std::vector<uint8_t> first(instance_.strategies(op));
    for (size_t k = 0; k < order.size() / 2; ++k) first[order[k]] = 1;
    const auto degree = static_cast<double>(instance_.neighbours(op).size());
    cost_.push_back({degree * std::log(static_cast<double>(order.size())), op, std::move(first)});
  }

  const Instance& instance_;
  const std::vector<double>& reduced_;
  std::vector<double> price_sum_;
  const double small_;
  std::vector<Split> memory_, cost_;
};

}  // namespace

std::vector<Halves> halves(const Relaxation& relaxation, double gap, int most) {
  const Instance& instance = relaxation.instance();
  std::vector<Split> splits = Splits(relaxation, gap).ways(most);
  // Each op has a single strategy of a small reduced cost: others count as well.
  if (splits.empty())
    splits = Splits(relaxation, std::numeric_limits<double>::infinity()).ways(most);
  std::vector<Halves> pairs;
  for (const Split& split : splits) {
    const std::vector<uint8_t> all(instance.first(instance.ops()), 1);
    Halves pair{all, all};
    for (size_t x = 0; x < split.first.size(); ++x)
      (split.first[x] ? pair.second : pair.first)[instance.first(split.op) + x] = 0;
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace situate::sharding
