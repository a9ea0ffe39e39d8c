#include "search/memory_orders/regrouping.h"

#include <algorithm>
#include <numeric>

#include "search/memory_orders/chunks.h"
#include "search/memory_orders/part_search.h"

namespace situate::search {

namespace {

// Ops of the smallest part around the fullest moment.
constexpr int shortest_part = 16;

// Sets of chunks that the search of one part looks at: more, where so few made none better. And to
// make it better still, when the fullest moment is elsewhere.
constexpr int64_t fewest_sets = 1'000, most_sets = 64'000, more_sets = 8, sets_beyond = 64;

// The best order of a part's chunks that was found, if one uses less than before.
struct Best {
  std::vector<int32_t> chunks;
  int64_t peak;
  int64_t sets = 0;     // that were looked at
  bool proved = false;  // no order uses less
};

// Looks at so many sets, but at few once no more than `enough` is in use.
Best best_of(const Part& part, int64_t peak, int64_t enough, int64_t sets) {
  PartSearch search(part);
  Best best{{}, peak};
  for (;;) {
    const int64_t most = best.peak > enough ? sets - best.sets : sets_beyond;
    int64_t left = most;
    const bool found = search.within(best.peak - 1, left);
    best.sets += most - left;
    if (!found) {
      best.proved = left >= 0;
      return best;
    }
    best.chunks = search.order();
    best.peak = search.peak();
  }
}

class Regrouping {
 public:
  Regrouping(const Problem& problem, std::span<const int32_t> order)
      : live_(problem), maker_(live_), order_(order.begin(), order.end()), place_(problem.n) {
    look();
  }

  std::vector<int32_t> run(int64_t target, Effort effort) && {
    for (int64_t sets = fewest_sets; sets <= most_sets; sets *= more_sets) {
      while (use_.during[fullest_] > target && improve(sets, effort)) {
      }
      if (proved_) break;
    }
    return std::move(order_);
  }

 private:
  int n() const { return static_cast<int>(order_.size()); }

  void look() {
    use_ = live_.use(order_);
    fullest_ = use_.fullest();
    for (int i = 0; i < n(); ++i) place_[order_[i]] = i;
  }

  // Puts a part around the fullest moment in a better order; False where none is found.
  bool improve(int64_t sets, Effort& effort) {
    proved_ = true;
    for (int length = std::min(shortest_part, n());; length = std::min(2 * length, n())) {
      int before = -1;
      for (const int back : {length / 2, length / 4, length - length / 4}) {
        const int begin = std::clamp(fullest_ - back, 0, n() - length);
        if (begin == before) continue;
        before = begin;
        if (effort.sets <= 0 || effort.ended()) return false;
        if (reorder(begin, begin + length, std::min(sets, effort.sets), effort)) return true;
      }
      if (length == n()) return false;
    }
  }

  // Bytes in use at the fullest moment outside of the places [begin, end).
  int64_t in_use_outside(int begin, int end) const {
    const auto first = use_.during.begin(), last = use_.during.end();
    int64_t most = 0;
    if (begin > 0) most = *std::max_element(first, first + begin);
    if (end < n()) most = std::max(most, *std::max_element(first + end, last));
    return most;
  }

  bool reorder(int begin, int end, int64_t sets, Effort& effort) {
    const auto chunk = chunks_of(live_.problem(), order_, place_, use_, begin, end, most_chunks);
    const Part part =
        maker_.make(order_, place_, begin, chunk, begin == 0 ? 0 : use_.after[begin - 1]);
    const Best best = best_of(part, use_.during[fullest_], in_use_outside(begin, end), sets);
    effort.sets -= best.sets + 1;
    proved_ &= best.proved;
    if (best.chunks.empty()) return false;
    put(begin, chunk, best.chunks);
    look();
    return true;
  }

  // Puts the ops of a part in the order of their chunks.
  void put(int begin, std::span<const int32_t> chunk, std::span<const int32_t> chunks) {
    std::vector<int32_t> turn(chunks.size());
    for (size_t i = 0; i < chunks.size(); ++i) turn[chunks[i]] = static_cast<int32_t>(i);
    const auto first = order_.begin() + begin;
    std::stable_sort(first, first + static_cast<int>(chunk.size()), [&](int a, int b) {
      return turn[chunk[place_[a] - begin]] < turn[chunk[place_[b] - begin]];
    });
  }

  const LiveTensors live_;
  PartMaker maker_;
  std::vector<int32_t> order_, place_;
  LiveTensors::Use use_;
  int fullest_ = 0;
  bool proved_ = true;  // that no part has a better order, of those looked at last
};

}  // namespace

std::vector<int32_t> regrouped_order(const Problem& problem, std::span<const int32_t> order,
                                     int64_t target, const Effort& effort) {
  return Regrouping(problem, order).run(target, effort);
}

std::optional<int64_t> least_peak(const Problem& problem, int64_t sets) {
  if (problem.n > most_chunks) return {};
  const LiveTensors live(problem);
  std::vector<int32_t> each(problem.n);
  std::iota(each.begin(), each.end(), 0);
  const Part part = PartMaker(live).make(problem.order, problem.place_in_order, 0, each, 0);
  const Best best = best_of(part, live.use(problem.order).peak(), 0, sets);
  if (!best.proved) return {};
  return best.peak;
}

}  // namespace situate::search
