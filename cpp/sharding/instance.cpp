#include "sharding/instance.h"

#include <algorithm>

namespace situate::sharding {

namespace {

std::vector<int64_t> distinct_starts(const Arrays& arrays) {
  std::vector<int64_t> starts;
  for (size_t i = 0; i < arrays.begin.size(); ++i)
    if (arrays.begin[i] < arrays.end[i]) starts.push_back(arrays.begin[i]);
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return starts;
}

}  // namespace

Instance::Instance(const Arrays& arrays)
    : ops_(static_cast<int>(arrays.first.size()) - 1),
      edges_(static_cast<int>(arrays.source.size())),
      limit_(arrays.limit),
      first_(arrays.first.begin(), arrays.first.end()),
      part_(arrays.part.begin(), arrays.part.end()),
      usage_(arrays.usage.begin(), arrays.usage.end()),
      row_(ops_ + 1),
      cost_(arrays.cost.begin(), arrays.cost.end()),
      forward_(arrays.pair_cost.begin(), arrays.pair_cost.end()),
      backward_(forward_.size()),
      parts_(arrays.begin.size()),
      neighbours_(2 * static_cast<size_t>(edges_)) {
  // Larger sums would lose the digits of costs beside them.
  for (double& c : cost_) c = std::min(c, kForbidden);
  for (double& c : forward_) c = std::min(c, kForbidden);
  const auto starts = distinct_starts(arrays);
  times_ = static_cast<int>(starts.size());
  auto place = [&](int64_t time) {
    return static_cast<int>(std::lower_bound(starts.begin(), starts.end(), time) - starts.begin());
  };
  const int64_t* usage = usage_.data();
  for (int i = 0; i < ops_; ++i) {
    most_strategies_ = std::max(most_strategies_, strategies(i));
    for (int64_t p = part_[i]; p < part_[i + 1]; ++p, usage += strategies(i)) {
      const int begin = place(arrays.begin[p]);
      parts_[p] = {begin, std::max(begin, place(arrays.end[p])), usage};
    }
  }
  for (int k = 0; k < edges_; ++k) ++row_[arrays.source[k] + 1], ++row_[arrays.target[k] + 1];
  for (int i = 0; i < ops_; ++i) row_[i + 1] += row_[i];
  std::vector<int64_t> next(row_.begin(), row_.end() - 1);
  for (int k = 0; k < edges_; ++k) {
    const int a = static_cast<int>(arrays.source[k]), b = static_cast<int>(arrays.target[k]);
    const int rows = strategies(a), columns = strategies(b);
    const double* table = &forward_[arrays.table[k]];
    double* transposed = &backward_[arrays.table[k]];
    for (int x = 0; x < rows; ++x)
      for (int y = 0; y < columns; ++y) transposed[y * rows + x] = table[x * columns + y];
    const int64_t at_a = next[a]++, at_b = next[b]++;
    neighbours_[at_a] = {b, k, static_cast<int>(at_b), table};
    neighbours_[at_b] = {a, k, static_cast<int>(at_a), transposed};
  }
}

double Instance::value(std::span<const int> chosen) const {
  double total = 0;
  for (int i = 0; i < ops_; ++i) {
    total += cost(i)[chosen[i]];
    for (const Neighbour& n : neighbours(i))
      if (i < n.op) total += n.rows[chosen[i] * strategies(n.op) + chosen[n.op]];
  }
  return total;
}

}  // namespace situate::sharding
