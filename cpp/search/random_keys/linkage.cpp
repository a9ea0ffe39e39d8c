#include "search/random_keys/linkage.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace situate::search {

namespace {

constexpr float one = 0x1p16f;

int32_t root(std::span<int32_t> parent, int32_t op) {
  while (parent[op] != op) op = parent[op] = parent[parent[op]];
  return op;
}

}  // namespace

Linkage::Linkage(std::span<const int32_t> source, std::span<const int32_t> target,
                 std::span<const float> together) {
  edges_.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    const auto threshold = static_cast<uint32_t>(std::round(together[i] * one));
    if (threshold > 0 && source[i] != target[i])
      edges_.push_back({source[i], target[i], threshold});
  }
}

void Linkage::draw(SplitMix64& random, std::span<int32_t> part) const {
  std::iota(part.begin(), part.end(), 0);
  uint64_t word = 0;
  for (size_t i = 0; i < edges_.size(); ++i) {
    // Four draws of 16 bits a word.
    word = i % 4 == 0 ? random.next() : word >> 16;
    const auto& [a, b, threshold] = edges_[i];
    if ((word & 0xffff) >= threshold) continue;
    const int32_t x = root(part, a), y = root(part, b);
    part[std::max(x, y)] = std::min(x, y);
  }
  // A parent is less than its op, so that one pass finds all roots.
  for (int32_t& op : part) op = part[op];
}

}  // namespace situate::search
