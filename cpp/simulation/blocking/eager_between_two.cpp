#include "simulation/blocking/eager_between_two.h"

#include <algorithm>

#include "problem/sentinels.h"
#include "simulation/prefetch.h"
#include "simulation/rank_queue.h"

namespace situate::sim {

namespace {
// The lane of a device's ops.
constexpr int ops_of(int device) { return 3 * device; }

}  // namespace

EagerBetweenTwo::EagerBetweenTwo(const Problem& problem)
    : n_(problem.n), opening_(Timeline::most_items(problem)) {}

void EagerBetweenTwo::line_up(const BlockingItems& items) {
  const auto* const item = items.items();
  const uint32_t* const rank = items.order().ranks();
  for (int i = 0; i < items.count(); ++i)
    opening_[i] = {i < n_ ? items.needs()[i] : 1, rank[i],
                   item[i].source * devices + item[i].target};
}

// One evaluation. Ranks are those of all items in every lane, for queues of so few lanes are small.
template <int Levels, bool Times>
class EagerBetweenTwo::Loop {
 public:
  Loop(EagerBetweenTwo& decoder, const BlockingItems& items, Timeline& timeline)
      : items_(items),
        opening_(decoder.opening_.data()),
        item_(items.items()),
        readers_(items.readers()),
        item_at_(items.order().items()),
        start_(timeline.start.data()),
        end_(timeline.end.data()),
        taken_(timeline.taken.data()),
        open_{{static_cast<size_t>(items.count()), decoder.room_[0]},
              {static_cast<size_t>(items.count()), decoder.room_[1]},
              {static_cast<size_t>(items.count()), decoder.room_[2]},
              {static_cast<size_t>(items.count()), decoder.room_[3]}} {
    for (int op = 0; op < decoder.n_; ++op) open(opening_[op], opening_[op].waits == 0);
  }

  double run() {
    for (;;) {
      const uint32_t of_two = std::min(first_[0], first_[1]);
      const uint32_t best = std::min(of_two, std::min(first_[2], first_[3]));
      if (best == none) return now_;
      const int index = take(best);
      const auto& item = item_[index];
      if (item.source == item.target) {
        start(item.source, index);
        run_ops(item.source);
      } else {
        now_ = set_times(index);
        hand_on(index);
      }
    }
  }

 private:
  // From when one device has started an op until both are idle.
  void run_ops(int device) {
    const int other = 1 - device;
    bool both = first_[ops_of(other)] != none;
    if (both) start(other, take(first_[ops_of(other)]));
    while (both) {
      const int next = until_[1] < until_[0];
      now_ = until_[next];
      hand_on(running_[next]);
      if (until_[0] == until_[1]) {
        hand_on(running_[1 - next]);
        return;
      }
      device = 1 - next;
      both = first_[ops_of(next)] != none;
      if (both) start(next, take(first_[ops_of(next)]));
    }
    now_ = until_[device];
    hand_on(running_[device]);
  }

  void start(int device, int index) {
    running_[device] = index;
    until_[device] = set_times(index);
  }
  // Returns the item's end.
  double set_times(int index) {
    const double end = now_ + item_[index].seconds;
    if constexpr (Times) {
      start_[index] = now_;
      end_[index] = end;
    }
    return end;
  }
  // Takes the first item of its lane.
  int take(uint32_t rank) {
    const int index = *taken_++ = item_at_[rank];
    const int lane = opening_[index].lane;
    open_[lane].pop();
    first_[lane] = open_[lane].first();
    return index;
  }
  void hand_on(int index) {
    const auto& item = item_[index];
    for (int i = item.first_reader; i < item.last_reader; ++i) arrive(readers_[i]);
    if (items_.has_signals())
      for (int i = items_.first_told(item.op); i < items_.first_told(item.op + 1); ++i)
        arrive(items_.told()[i]);
  }
  // With a branch only where not all fits the cache, for there a processor reads ahead.
  void arrive(int reader) {
    Opening& opening = opening_[reader];
    const bool opens = --opening.waits == 0;
    if constexpr (Levels == 2) {
      open(opening, opens);
    } else if (opens) {
      open(opening, true);
      prefetch(item_ + reader);
    }
  }
  void open(const Opening& opening, bool condition) {
    open_[opening.lane].insert(opening.rank, condition);
    uint32_t& first = first_[opening.lane];
    first = std::min(first, opening.rank | -static_cast<uint32_t>(!condition));
  }

  const BlockingItems& items_;
  Opening* const opening_;
  const BlockingItems::Item* const item_;
  const int32_t *const readers_, *const item_at_;
  double *const start_, *const end_;
  int32_t* taken_;
  double now_ = 0;
  double until_[devices];
  int32_t running_[devices];
  uint32_t first_[lanes] = {none, none, none, none};
  RankQueue<Levels> open_[lanes];
};

template <bool Times>
double EagerBetweenTwo::run_for(const BlockingItems& items, Timeline& timeline) {
  if (items.count() <= 1 << 12) return Loop<2, Times>(*this, items, timeline).run();
  if (items.count() <= 1 << 18) return Loop<3, Times>(*this, items, timeline).run();
  return Loop<5, Times>(*this, items, timeline).run();
}

double EagerBetweenTwo::run(const BlockingItems& items, Timeline& timeline, bool times) {
  line_up(items);
  timeline.taken.resize(items.count());
  return times ? run_for<true>(items, timeline) : run_for<false>(items, timeline);
}

}  // namespace situate::sim
