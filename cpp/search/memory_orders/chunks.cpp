#include "search/memory_orders/chunks.h"

#include <algorithm>
#include <numeric>

namespace situate::search {

namespace {

// The places [begin, end) in so many runs of about the same length, each cut where least is in use
// nearby: the first place of each, and the end of the last.
std::vector<int32_t> cuts(const LiveTensors::Use& use, int begin, int end, int runs) {
  std::vector<int32_t> found{begin};
  const auto middle = [&](int run) {
    return begin + static_cast<int>((2 * run + 1) * int64_t{end - begin} / (2 * runs));
  };
  for (int run = 1; run < runs; ++run) {
    const auto first = use.after.begin() + middle(run - 1);
    const auto least = std::min_element(first, use.after.begin() + middle(run));
    found.push_back(static_cast<int32_t>(least - use.after.begin()) + 1);
  }
  found.push_back(end);
  return found;
}

class Components {
 public:
  Components(const Problem& problem, std::span<const int32_t> order, std::span<const int32_t> place)
      : p_(problem), order_(order), place_(place) {}

  // Numbers the connected components of the run [from, to) from `first` on, in `chunk` of its
  // places; returns the number behind the last.
  int number(int from, int to, int first, std::span<int32_t> chunk) {
    root_.resize(to - from);
    std::iota(root_.begin(), root_.end(), 0);
    for (int i = from; i < to; ++i)
      for (const int tensor : p_.inputs_of(order_[i]))
        if (const int producer = place_[p_.producer[tensor]]; producer >= from)
          join(producer - from, i - from);
    for (int i = 0; i < to - from; ++i) chunk[i] = root_[i] == i ? first++ : chunk[find(i)];
    return first;
  }

 private:
  int find(int i) {
    while (root_[i] != i) i = root_[i] = root_[root_[i]];
    return i;
  }
  // The root of a component is its first place.
  void join(int i, int j) {
    i = find(i), j = find(j);
    root_[std::max(i, j)] = std::min(i, j);
  }

  const Problem& p_;
  const std::span<const int32_t> order_, place_;
  std::vector<int32_t> root_;  // of each place of the run
};

}  // namespace

std::vector<int32_t> chunks_of(const Problem& problem, std::span<const int32_t> order,
                               std::span<const int32_t> place, const LiveTensors::Use& use,
                               int begin, int end, int most) {
  std::vector<int32_t> chunk(end - begin);
  if (end - begin <= most) {
    std::iota(chunk.begin(), chunk.end(), 0);
    return chunk;
  }
  Components components(problem, order, place);
  const auto number = [&](int runs, bool apart) {
    const auto ends = cuts(use, begin, end, runs);
    int count = 0;
    for (size_t i = 0; i + 1 < ends.size(); ++i) {
      const auto run = std::span(chunk).subspan(ends[i] - begin, ends[i + 1] - ends[i]);
      if (apart)
        count = components.number(ends[i], ends[i + 1], count, run);
      else
        std::fill(run.begin(), run.end(), count++);
    }
    return count;
  };
  for (int runs = most / 2; runs >= most / 4; runs /= 2)
    if (number(runs, true) <= most) return chunk;
  number(most, false);
  return chunk;
}

}  // namespace situate::search
