#include "search/items/item_orders.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "search/deadline.h"
#include "search/items/placed_items.h"

namespace situate::search {
namespace {

using problem::Memory;
using problem::Problem;

constexpr double endless = std::numeric_limits<double>::infinity();
// Ways to have taken one set of items that are remembered, and those of all sets.
constexpr size_t most_ways = 64, most_known = 1'000'000;
constexpr double rounded = 1 - 1e-12;  // of sums that bound others: they are added in another order

// What has come of the items taken so far.
struct State {
  Items taken = 0;
  double last_start = 0, end = 0;
  std::vector<double> free, channel_free;  // of devices and channels
  std::vector<double> ready;               // of items: when what they read is there
  std::vector<double> left;                // of devices: seconds of items to come
  std::vector<int64_t> used, peak;         // of devices
};

class Search {
 public:
  Search(const Problem& problem, std::span<const int32_t> placement, ItemGoal goal,
         const ItemLimits& limits)
      : p_(problem),
        goal_(goal),
        limits_(limits),
        placed_(problem, placement),
        items_(placed_.items),
        deadline_(limits.seconds) {}

  ItemOrder found() && {
    if (placed_.too_many) {
      best_.exhausted = false;
      return std::move(best_);
    }
    bytes_count_ = counts_bytes();
    try {
      extend(begin());
    } catch (const OutOfTime&) {
      best_.exhausted = false;
    }
    return std::move(best_);
  }

 private:
  bool counts_bytes() const {
    if (p_.memory == Memory::persistent) return goal_ != ItemGoal::time;
    if (goal_ != ItemGoal::time) return true;
    int64_t all = 0;
    for (const auto& item : items_) all += item.added;
    for (int op = 0; op < p_.n; ++op) all += p_.persistent[op];
    return all > *std::min_element(p_.capacity.begin(), p_.capacity.end());
  }
  bool by_step() const { return bytes_count_ && p_.memory == Memory::step; }

  State begin() const {
    State state;
    state.free.assign(p_.d, 0);
    state.channel_free.assign(p_.contention ? p_.channels : 0, 0);
    state.ready.assign(items_.size(), 0);
    state.left.assign(p_.d, 0);
    state.used.assign(p_.d, 0);
    for (const auto& item : items_) {
      state.left[item.source] += item.seconds;
      if (item.target != item.source) state.left[item.target] += item.seconds;
      if (item.op >= 0) state.used[item.target] += p_.persistent[item.op];
    }
    state.peak = state.used;
    return state;
  }

  double start_of(const State& state, int i) const {
    const Item& item = items_[i];
    double start = std::max({state.free[item.source], state.free[item.target], state.ready[i]});
    if (item.channel >= 0) start = std::max(start, state.channel_free[item.channel]);
    return start;
  }

  State with(const State& before, int i, double start) const {
    State state = before;
    const Item& item = items_[i];
    const double end = start + item.seconds;
    state.taken |= set_of(i);
    state.last_start = start;
    state.end = std::max(state.end, end);
    if (bytes_count_) count(state, item, start);
    for (const int device : {item.source, item.target}) state.free[device] = end;
    state.left[item.source] -= item.seconds;
    if (item.target != item.source) state.left[item.target] -= item.seconds;
    if (item.channel >= 0) state.channel_free[item.channel] = end;
    for (const auto& [reader, delay] : placed_.readers[i])
      state.ready[reader] = std::max(state.ready[reader], end + delay);
    return state;
  }

  // Only what lasts counts, unless memory is counted item by item.
  void count(State& state, const Item& item, double start) const {
    const auto seen = [&](int device) {
      state.peak[device] = std::max(state.peak[device], state.used[device]);
    };
    for (const int device : {item.source, item.target})
      if (!by_step() && start > state.free[device]) seen(device);
    state.used[item.target] += item.added;
    if (by_step() || item.seconds > 0) {
      seen(item.target);
      if (!by_step()) seen(item.source);
    }
    state.used[item.target] -= item.freed;
    for (const int index : item.copies) {
      const TensorCopy& copy = placed_.copies[index];
      if ((copy.users & state.taken) == copy.users) state.used[copy.device] -= copy.size;
    }
  }

  // No order that goes on from here has a score below this one.
  std::pair<int64_t, double> least(const State& state) const {
    int64_t excess = 0;
    for (int device = 0; device < p_.d; ++device)
      excess += std::max<int64_t>(0, state.peak[device] - p_.capacity[device]);
    if (!bytes_count_) excess = 0;
    if (goal_ == ItemGoal::fit) return {excess, limits_.constant};
    if (goal_ == ItemGoal::memory)
      return {excess, static_cast<double>(*std::max_element(state.peak.begin(), state.peak.end()))};
    double end = state.end;
    for (int device = 0; device < p_.d; ++device)
      end = std::max(end, (state.free[device] + state.left[device]) * rounded);
    for (int i = 0; i < static_cast<int>(items_.size()); ++i)
      if (is_open(state, i)) end = std::max(end, (start_of(state, i) + items_[i].tail) * rounded);
    return {excess, end};
  }
  bool is_open(const State& state, int i) const {
    return !(state.taken & set_of(i)) && (items_[i].needs & state.taken) == items_[i].needs;
  }
  bool promises(const State& state) const {
    return least(state) < std::pair(limits_.excess, limits_.value);
  }

  void extend(const State& state) {
    if (!promises(state)) return;
    if (order_.size() == items_.size()) return complete(state);
    if (!order_.empty() && is_known(state)) return;
    for (const int i : next_items(state)) {
      if (++best_.steps > limits_.steps) throw OutOfTime();
      deadline_.check();
      order_.push_back(i);
      extend(with(state, i, start_of(state, i)));
      order_.pop_back();
    }
  }

  // Items that may be next, the most urgent of those that start first in front. Unless memory is
  // counted in this order, items are taken as they start; and where bytes do not count either, no
  // device waits for as long as an item takes that it could run meanwhile (B. Giffler, G. L.
  // Thompson, Operations Research 8(4), 1960).
  std::vector<int> next_items(const State& state) const {
    std::vector<std::pair<double, int>> open;
    double first_end = endless;
    for (int i = 0; i < static_cast<int>(items_.size()); ++i) {
      if (!is_open(state, i)) continue;
      const double start = start_of(state, i);
      first_end = std::min(first_end, start + items_[i].seconds);
      if (by_step() || start >= state.last_start) open.emplace_back(start, i);
    }
    std::erase_if(open, [&](const auto& entry) {
      const bool waits =
          entry.first > first_end || (entry.first == first_end && items_[entry.second].seconds > 0);
      return !bytes_count_ && waits;
    });
    std::sort(open.begin(), open.end(), [&](const auto& a, const auto& b) {
      if (a.first != b.first) return a.first < b.first;
      const double tail_a = items_[a.second].tail, tail_b = items_[b.second].tail;
      return tail_a != tail_b ? tail_a > tail_b : a.second < b.second;
    });
    std::vector<int> found;
    for (const auto& [start, i] : open) found.push_back(i);
    return found;
  }

  // Whether the same items were taken in a way that is nowhere worse.
  bool is_known(const State& state) {
    auto now = figures(state);
    auto& ways = known_[state.taken];
    for (const auto& way : ways)
      if (std::equal(way.begin(), way.end(), now.begin(), std::less_equal<>())) return true;
    std::erase_if(ways, [&](const auto& way) {
      return std::equal(now.begin(), now.end(), way.begin(), std::less_equal<>());
    });
    if (ways.size() < most_ways && remembered_ < most_known) {
      ways.push_back(std::move(now));
      ++remembered_;
    }
    return false;
  }

  // What the rest of an order depends on: the smaller, the better.
  std::vector<double> figures(const State& state) const {
    std::vector<double> found{state.end, by_step() ? 0 : state.last_start};
    found.insert(found.end(), state.free.begin(), state.free.end());
    found.insert(found.end(), state.channel_free.begin(), state.channel_free.end());
    for (size_t i = 0; i < items_.size(); ++i)
      found.push_back(state.taken & set_of(static_cast<int>(i)) ? 0 : state.ready[i]);
    if (!bytes_count_) return found;
    for (int device = 0; device < p_.d; ++device) {
      found.push_back(static_cast<double>(state.peak[device]));
      // Bytes that have not lasted yet count only if the device waits: later is as good as sooner.
      const bool pending = state.used[device] > state.peak[device];
      found.push_back(pending ? -state.free[device] : -endless);
    }
    return found;
  }

  void complete(State state) {
    for (int device = 0; device < p_.d; ++device)
      if (bytes_count_ && !by_step() && state.end > state.free[device])
        state.peak[device] = std::max(state.peak[device], state.used[device]);
    const auto score = least(state);
    if (!(score < std::pair(limits_.excess, limits_.value))) return;
    std::tie(limits_.excess, limits_.value) = score;
    best_.ops.clear();
    best_.transfers.clear();
    for (const int i : order_) {
      const Item& item = items_[i];
      if (item.op >= 0)
        best_.ops.push_back(item.op);
      else
        best_.transfers.push_back(
            {item.tensor, item.target, static_cast<int32_t>(best_.ops.size())});
    }
  }

  const Problem& p_;
  const ItemGoal goal_;
  ItemLimits limits_;  // and the best score so far
  const PlacedItems placed_;
  const std::vector<Item>& items_;
  Deadline deadline_;
  bool bytes_count_ = false;
  std::vector<int> order_;
  std::unordered_map<Items, std::vector<std::vector<double>>> known_;
  size_t remembered_ = 0;
  ItemOrder best_;
};

}  // namespace

ItemOrder best_item_order(const Problem& problem, std::span<const int32_t> placement, ItemGoal goal,
                          const ItemLimits& limits) {
  return Search(problem, placement, goal, limits).found();
}

}  // namespace situate::search
