#include "search/random_keys/expectation.h"

#include <algorithm>
#include <utility>

namespace situate::search {

namespace {

// Places of ops in the topological order in which, of those that are ready, the one of the highest
// priority goes first, and of equal ones the lower index.
class TopologicalSort {
 public:
  explicit TopologicalSort(const Problem& problem) : problem_(problem), missing_(problem.n) {}

  void add_places(const float* priority, std::vector<int64_t>& total) {
    for (int op = 0; op < problem_.n; ++op) {
      missing_[op] = problem_.input_start[op + 1] - problem_.input_start[op];
      if (missing_[op] == 0) push(priority, op);
    }
    for (int place = 0; !ready_.empty(); ++place) {
      std::pop_heap(ready_.begin(), ready_.end());
      const int op = -ready_.back().second;
      ready_.pop_back();
      total[op] += place;
      for (int i = problem_.output_start[op]; i < problem_.output_start[op + 1]; ++i)
        for (const int reader : problem_.consumers_of(problem_.outputs[i]))
          if (--missing_[reader] == 0) push(priority, reader);
    }
  }

 private:
  void push(const float* priority, int op) {
    ready_.emplace_back(priority[op], -op);
    std::push_heap(ready_.begin(), ready_.end());
  }

  const Problem& problem_;
  std::vector<int32_t> missing_;                  // inputs that are not there yet
  std::vector<std::pair<float, int32_t>> ready_;  // a heap
};

}  // namespace

Expectation expectation(const Brkga& brkga) {
  const Problem& p = brkga.problem();
  const size_t keys = static_cast<size_t>(p.n) * p.d;
  std::vector<int64_t> placed(keys), places(p.n);
  std::vector<int32_t> placement(p.n);
  TopologicalSort sort(p);
  int64_t members = 0;
  for (const Population& population : brkga.populations())
    for (int i = 0; population.begun() && i < population.size(); ++i, ++members) {
      const auto decision = brkga.keys().decode(population.member(i), placement.data());
      for (int op = 0; op < p.n; ++op) ++placed[static_cast<size_t>(op) * p.d + placement[op]];
      sort.add_places(decision.priority, places);
    }
  Expectation result{std::vector<float>(keys, 1.0f / static_cast<float>(p.d)),
                     std::vector<float>(p.n, 0.5f)};
  if (members == 0) return result;
  const auto mean = [&](int64_t total, int64_t of) {
    return static_cast<float>(static_cast<double>(total) / static_cast<double>(members * of));
  };
  for (size_t key = 0; key < keys; ++key) result.share[key] = mean(placed[key], 1);
  for (int op = 0; op < p.n; ++op) result.place[op] = mean(places[op], std::max(1, p.n - 1));
  return result;
}

}  // namespace situate::search
