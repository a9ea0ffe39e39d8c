#include "sharding/halves.h"

#include <algorithm>
#include <cmath>

namespace situate::sharding {

namespace {

// Share of the gap below which the reduced cost of a strategy counts as small.
constexpr double kSmall = 0.1;

struct Split {
  double score;
  int op;
  std::vector<uint8_t> first;  // by strategy of the op: it is in the first half
};

class Splits {
 public:
  Splits(const Relaxation& relaxation, double gap)
      : instance_(relaxation.instance()),
        reduced_(relaxation.messages().reduced_costs()),
        price_(relaxation.messages().best_prices()),
        small_(kSmall * gap) {}

  std::vector<Split> all() {
    for (int op = 0; op < instance_.ops(); ++op) {
      if (instance_.strategies(op) == 1) continue;
      split_by_memory(op);
      split_by_cost(op);
    }
    return std::move(splits_);
  }

 private:
  bool is_small(int op, int x) const { return reduced_[instance_.first(op) + x] <= small_; }

  // The strategies' cost of memory, divided in the middle of those with small reduced costs.
  void split_by_memory(int op) {
    const int count = instance_.strategies(op);
    std::vector<double> load(count);
    for (const sharding::Part& part : instance_.parts(op)) {
      double price = 0;
      for (int t = part.begin; t < part.end; ++t) price += price_[t];
      for (int x = 0; x < count; ++x) load[x] += price * static_cast<double>(part.usage[x]);
    }
    double least = 0, most = 0;
    bool any = false;
    for (int x = 0; x < count; ++x) {
      if (!is_small(op, x)) continue;
      least = any ? std::min(least, load[x]) : load[x];
      most = any ? std::max(most, load[x]) : load[x];
      any = true;
    }
    if (!any || most <= least) return;
    std::vector<uint8_t> first(count);
    for (int x = 0; x < count; ++x) first[x] = load[x] <= (least + most) / 2;
    splits_.push_back({most - least, op, std::move(first)});
  }

  // The first half of those with small reduced costs, apart from all others.
  void split_by_cost(int op) {
    const int count = instance_.strategies(op);
    std::vector<int> order;
    for (int x = 0; x < count; ++x)
      if (is_small(op, x)) order.push_back(x);
    if (order.size() < 2) return;
    const double* reduced = &reduced_[instance_.first(op)];
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return reduced[a] < reduced[b]; });
    std::vector<uint8_t> first(count);
    for (size_t k = 0; k < order.size() / 2; ++k) first[order[k]] = 1;
    const auto degree = static_cast<double>(instance_.neighbours(op).size());
    // Far below the scores of memory.
    splits_.push_back({-1 / (degree * std::log(static_cast<double>(order.size())) + 1e-9), op,
                       std::move(first)});
  }

  const Instance& instance_;
  const std::vector<double>& reduced_;
  const std::vector<double>& price_;
  const double small_;
  std::vector<Split> splits_;
};

}  // namespace

std::vector<Halves> halves(const Relaxation& relaxation, double gap, int most) {
  std::vector<Split> splits = Splits(relaxation, gap).all();
  std::stable_sort(splits.begin(), splits.end(),
                   [](const Split& a, const Split& b) { return a.score > b.score; });
  if (static_cast<int>(splits.size()) > most) splits.resize(most);
  const Instance& instance = relaxation.instance();
  std::vector<Halves> pairs;
  for (const Split& split : splits) {
    Halves pair;
    pair.first.assign(instance.first(instance.ops()), 1);
    pair.second = pair.first;
    for (size_t x = 0; x < split.first.size(); ++x)
      (split.first[x] ? pair.second : pair.first)[instance.first(split.op) + x] = 0;
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace situate::sharding
