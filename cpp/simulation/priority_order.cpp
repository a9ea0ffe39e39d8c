#include "simulation/priority_order.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace situate::sim {

namespace {
// From so many items on, 2^22 buckets leave less to do than 2^16.
constexpr size_t many = 4096;

// Moves an item that insertion may take on average before another sort is faster.
constexpr size_t few_moves = 8;

// The least and the largest: eight of each, for each alone would wait for the one before.
std::pair<float, float> range_of(std::span<const float> priorities) {
  constexpr size_t lanes = 8;
  std::array<float, lanes> low, high;
  low.fill(priorities[0]);
  high.fill(priorities[0]);
  const size_t rest = priorities.size() % lanes;
  for (size_t i = 0; i < priorities.size() - rest; i += lanes)
    for (size_t lane = 0; lane < lanes; ++lane) {
      const float priority = priorities[i + lane];
      low[lane] = priority < low[lane] ? priority : low[lane];
      high[lane] = priority > high[lane] ? priority : high[lane];
    }
  for (const float priority : priorities.last(rest)) {
    low[0] = priority < low[0] ? priority : low[0];
    high[0] = priority > high[0] ? priority : high[0];
  }
  return {*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end())};
}
}  // namespace

void PriorityOrder::sort(std::span<const float> priorities, const std::vector<int32_t>& sequence) {
  const size_t count = priorities.size();
  for (auto* of_items : {&keys_, &sorted_}) of_items->resize(count);
  item_at_.resize(count);
  rank_of_.resize(count);
  if (count < many)
    sort_by_buckets<8>(priorities, sequence);
  else
    sort_by_buckets<11>(priorities, sequence);
  if (!finish_by_insertion(priorities)) {
    item_at_ = sequence;
    std::stable_sort(item_at_.begin(), item_at_.end(),
                     [&](int a, int b) { return priorities[a] > priorities[b]; });
  }
  for (size_t rank = 0; rank < count; ++rank)
    rank_of_[item_at_[rank]] = static_cast<uint32_t>(rank);
}

// Two passes of a stable radix sort over 2^(2 Bits) buckets of equal width, the highest priorities
// in the first.
template <int Bits>
void PriorityOrder::sort_by_buckets(std::span<const float> priorities,
                                    const std::vector<int32_t>& sequence) {
  constexpr uint32_t width = 1u << Bits, last = (1u << 2 * Bits) - 1;
  const size_t count = priorities.size();
  const auto [low, high] = range_of(priorities);
  const double top = high, range = top - low, scale = range > 0 ? last / range : 0;
  std::array<uint32_t, width> by_low{}, by_high{};
  for (size_t i = 0; i < count; ++i) {
    const auto item = static_cast<uint32_t>(sequence[i]);
    const auto bucket = static_cast<uint32_t>((top - priorities[item]) * scale);
    keys_[i] = static_cast<uint64_t>(bucket) << 32 | item;
    ++by_low[bucket % width];
    ++by_high[bucket / width];
  }
  uint32_t low_sum = 0, high_sum = 0;
  for (uint32_t digit = 0; digit < width; ++digit) {
    low_sum += std::exchange(by_low[digit], low_sum);
    high_sum += std::exchange(by_high[digit], high_sum);
  }
  for (const uint64_t key : keys_) sorted_[by_low[(key >> 32) % width]++] = key;
  for (const uint64_t key : sorted_)
    item_at_[by_high[key >> (32 + Bits)]++] = static_cast<int32_t>(static_cast<uint32_t>(key));
}

// Puts the items of one bucket in order; false where too many of them share one.
bool PriorityOrder::finish_by_insertion(std::span<const float> priorities) {
  size_t moves = 0;
  for (size_t rank = 1; rank < item_at_.size(); ++rank) {
    const int32_t item = item_at_[rank];
    const float priority = priorities[item];
    size_t place = rank;
    for (; place > 0 && priorities[item_at_[place - 1]] < priority; --place)
      item_at_[place] = item_at_[place - 1];
    item_at_[place] = item;
    moves += rank - place;
    if (moves > few_moves * item_at_.size()) return false;
  }
  return true;
}

}  // namespace situate::sim
