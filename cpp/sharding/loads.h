// The memory in use over time, with its maximum, under changes of intervals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace situate::sharding {

class Loads {
 public:
  explicit Loads(int times) {
    while (leaves_ < times) leaves_ *= 2;
    add_.assign(2 * leaves_, 0);
    most_.assign(2 * leaves_, 0);
  }
  void add(int begin, int end, int64_t bytes) {
    if (begin < end && bytes != 0) add(1, 0, leaves_, begin, end, bytes);
  }
  int64_t most() const { return most_[1]; }
  // The time of most bytes, the first of several.
  int peak() const {
    int node = 1;
    while (node < leaves_) {
      node *= 2;
      if (most_[node] < most_[node + 1]) ++node;
    }
    return node - leaves_;
  }
  int64_t at(int time) const {
    int64_t bytes = 0;
    for (int node = time + leaves_; node > 0; node /= 2) bytes += add_[node];
    return bytes;
  }

 private:
  void add(int node, int low, int high, int begin, int end, int64_t bytes) {
    if (begin <= low && high <= end) {
      add_[node] += bytes;
      most_[node] += bytes;
      return;
    }
    const int middle = (low + high) / 2;
    if (begin < middle) add(2 * node, low, middle, begin, end, bytes);
    if (end > middle) add(2 * node + 1, middle, high, begin, end, bytes);
    most_[node] = add_[node] + std::max(most_[2 * node], most_[2 * node + 1]);
  }

  int leaves_ = 1;
  // By node of a binary tree over time: bytes added to all its times, and its largest sum, with
  // those bytes but not with those of the nodes above it.
  std::vector<int64_t> add_, most_;
};

}  // namespace situate::sharding
