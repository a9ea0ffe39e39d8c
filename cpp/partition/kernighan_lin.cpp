#include "partition/kernighan_lin.h"

#include <algorithm>
#include <cmath>

namespace situate::partition {

namespace {

// Part of the load by which a side may miss its share, unless the units are so large that it does
// from the beginning.
constexpr double tolerance = 0.03;

// Of the units, or pairs of units, of the greatest gains so many are looked at for one that keeps
// the balance.
constexpr int longest_look = 256;

constexpr int most_passes = 100;

}  // namespace

KernighanLin::KernighanLin(const WeightedGraph& graph, std::span<const int8_t> side, double share,
                           std::span<const int64_t> order)
    : graph_(graph),
      side_(side.begin(), side.end()),
      free_(side.size(), 0),
      gain_(side.size(), 0),
      is_open_(side.size(), 0),
      between_(side.size(), 0) {
  fill(order, share);
}

// The first side takes free units in the order until it has its share.
void KernighanLin::fill(std::span<const int64_t> order, double share) {
  double total = 0;
  for (size_t unit = 0; unit < side_.size(); ++unit) {
    if (side_[unit] == static_cast<int8_t>(Side::outside)) continue;
    total += graph_.load[unit];
    free_[unit] = side_[unit] == static_cast<int8_t>(Side::free);
    if (!free_[unit]) load_[side_[unit]] += graph_.load[unit];
  }
  target_ = share * total;
  for (const int64_t unit : order) {
    if (!free_[unit]) continue;
    const double load = graph_.load[unit];
    side_[unit] = load_[0] + load / 2 <= target_ ? 0 : 1;
    load_[side_[unit]] += load;
  }
  slack_ = std::max(tolerance * total, std::abs(load_[0] - target_));
}

void KernighanLin::improve() {
  for (int i = 0; i < most_passes && pass();) ++i;
}

// Exchanges units until all have moved, and keeps the exchanges up to the least cut. False if that
// is the one at the beginning.
bool KernighanLin::pass() {
  begin_pass();
  std::vector<int> moved;
  size_t kept = 0;
  double sum = 0, best = 0;
  for (Exchange next = best_exchange(); next.any(); next = best_exchange()) {
    apply(next);
    sum += next.gain;
    for (const int unit : {next.from_first, next.from_second})
      if (unit >= 0) moved.push_back(unit);
    if (sum <= best) continue;
    best = sum;
    kept = moved.size();
  }
  for (size_t i = kept; i < moved.size(); ++i) {
    const int unit = moved[i];
    load_[side_[unit]] -= graph_.load[unit];
    side_[unit] = 1 - side_[unit];
    load_[side_[unit]] += graph_.load[unit];
  }
  return kept > 0;
}

void KernighanLin::begin_pass() {
  std::vector<GainQueue::Entry> entries[2];
  for (int unit = 0; unit < static_cast<int>(side_.size()); ++unit) {
    if (!free_[unit]) continue;
    double gain = 0;
    for (int64_t i = graph_.start[unit]; i < graph_.start[unit + 1]; ++i) {
      const int8_t there = side_[graph_.neighbour[i]];
      if (there != static_cast<int8_t>(Side::outside))
        gain += there == side_[unit] ? -graph_.weight[i] : graph_.weight[i];
    }
    gain_[unit] = gain;
    entries[side_[unit]].push_back({-gain, unit});
  }
  is_open_ = free_;
  for (const int side : {0, 1}) open_[side].assign(std::move(entries[side]));
}

KernighanLin::Exchange KernighanLin::best_exchange() {
  Exchange best;
  look_at_single(0, best);
  look_at_single(1, best);
  look_at_pairs(best);
  return best;
}

// One unit changes sides, as if for a dummy of the paper's section 3.1 (unequal sizes).
void KernighanLin::look_at_single(int side, Exchange& best) const {
  int left = longest_look;
  open_[side].for_each([&](const GainQueue::Entry& entry) {
    const auto& [minus_gain, unit] = entry;
    if (left-- == 0 || (best.any() && -minus_gain <= best.gain)) return false;
    if (!balanced(side == 0 ? -graph_.load[unit] : graph_.load[unit])) return true;
    best = side == 0 ? Exchange{unit, -1, -minus_gain} : Exchange{-1, unit, -minus_gain};
    return false;
  });
}

void KernighanLin::look_at_pairs(Exchange& best) {
  int left = longest_look;
  if (open_[1].empty()) return;
  const double least_second = open_[1].front().first;
  open_[0].for_each([&](const GainQueue::Entry& entry) {
    const auto [minus_first, first] = entry;
    const auto hopeless = [&](double minus_second) {
      return best.any() && -minus_first - minus_second <= best.gain;
    };
    if (left <= 0 || hopeless(least_second)) return false;
    const auto row = [&](auto visit) {
      for (int64_t i = graph_.start[first]; i < graph_.start[first + 1]; ++i) visit(i);
    };
    row([&](int64_t i) { between_[graph_.neighbour[i]] = graph_.weight[i]; });
    open_[1].for_each([&](const GainQueue::Entry& other) {
      const auto [minus_second, second] = other;
      if (left-- <= 0 || hopeless(minus_second)) return false;
      const double gain = -minus_first - minus_second - 2 * between_[second];
      if (best.any() && gain <= best.gain) return true;
      if (balanced(graph_.load[second] - graph_.load[first])) best = {first, second, gain};
      return true;
    });
    row([&](int64_t i) { between_[graph_.neighbour[i]] = 0; });
    return true;
  });
}

// Whether the first side is near its share once it has so much more load.
bool KernighanLin::balanced(double moved) const {
  return std::abs(load_[0] + moved - target_) <= slack_;
}

void KernighanLin::apply(const Exchange& exchange) {
  if (exchange.from_first >= 0) move(exchange.from_first);
  if (exchange.from_second >= 0) move(exchange.from_second);
}

// Moves a unit for the rest of the pass, and tells its neighbours.
void KernighanLin::move(int unit) {
  const int from = side_[unit];
  open_[from].erase({-gain_[unit], unit});
  is_open_[unit] = 0;
  load_[from] -= graph_.load[unit];
  load_[1 - from] += graph_.load[unit];
  side_[unit] = static_cast<int8_t>(1 - from);
  for (int64_t i = graph_.start[unit]; i < graph_.start[unit + 1]; ++i) {
    const auto other = static_cast<int>(graph_.neighbour[i]);
    if (!is_open_[other]) continue;
    auto& open = open_[side_[other]];
    open.erase({-gain_[other], other});
    gain_[other] += (side_[other] == from ? 2 : -2) * graph_.weight[i];
    open.insert({-gain_[other], other});
  }
}

}  // namespace situate::partition
