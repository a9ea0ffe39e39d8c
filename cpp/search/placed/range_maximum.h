// Numbers in a row: an amount is added to a range of them, and the largest of all is known.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace situate::search {

// A segment tree whose nodes hold what was added to all below them, so that nothing is pushed down.
class RangeMaximum {
 public:
  explicit RangeMaximum(std::span<const int64_t> values)
      : leaves_(static_cast<int>(std::bit_ceil(std::max<size_t>(1, values.size())))),
        largest_(2 * static_cast<size_t>(leaves_), std::numeric_limits<int64_t>::min() / 2),
        added_(leaves_, 0) {
    std::copy(values.begin(), values.end(), largest_.begin() + leaves_);
    for (int node = leaves_ - 1; node > 0; --node) pull(node);
  }

  int64_t largest() const { return largest_[1]; }

  // To the numbers from `first` to `last`, both included; to none where the range is empty.
  void add(int first, int last, int64_t amount) {
    if (first > last) return;
    const int left = first + leaves_, right = last + leaves_;
    for (int l = left, r = right + 1; l < r; l /= 2, r /= 2) {
      if (l % 2) add_below(l++, amount);
      if (r % 2) add_below(--r, amount);
    }
    for (int node = left / 2; node > 0; node /= 2) pull(node);
    for (int node = right / 2; node > 0; node /= 2) pull(node);
  }

 private:
  void add_below(int node, int64_t amount) {
    largest_[node] += amount;
    if (node < leaves_) added_[node] += amount;
  }
  void pull(int node) {
    largest_[node] = std::max(largest_[2 * node], largest_[2 * node + 1]) + added_[node];
  }

  int leaves_;  // a power of two
  std::vector<int64_t> largest_, added_;
};

}  // namespace situate::search
