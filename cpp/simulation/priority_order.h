// Items in the order of their priorities, the highest first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace situate::sim {

class PriorityOrder {
 public:
  // Ranks items 0 .. priorities.size() - 1. Of equal priorities the one that is earlier in
  // `sequence`, a permutation of the items, goes first.
  void sort(std::span<const float> priorities, const std::vector<int32_t>& sequence);

  int32_t item_at(uint32_t rank) const { return item_at_[rank]; }
  uint32_t rank_of(int32_t item) const { return rank_of_[item]; }
  const int32_t* items() const { return item_at_.data(); }
  const uint32_t* ranks() const { return rank_of_.data(); }

 private:
  template <int Bits>
  void sort_by_buckets(std::span<const float> priorities, const std::vector<int32_t>& sequence);
  bool finish_by_insertion(std::span<const float> priorities);

  std::vector<uint64_t> keys_, sorted_;  // a bucket and an item
  std::vector<int32_t> item_at_;
  std::vector<uint32_t> rank_of_;
};

}  // namespace situate::sim
