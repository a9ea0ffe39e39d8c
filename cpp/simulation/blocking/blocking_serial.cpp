#include "simulation/blocking/blocking_serial.h"

#include <algorithm>

#include "simulation/prefetch.h"

namespace situate::sim {

namespace {
// `condition ? yes : no`, of which compilers make a branch where they take it for predictable.
inline uint32_t chosen(bool condition, uint32_t yes, uint32_t no) {
  return no ^ ((no ^ yes) & -static_cast<uint32_t>(condition));
}
}  // namespace

BlockingSerial::BlockingSerial(const Problem& problem, BlockingItems& items)
    : problem_(problem),
      items_(items),
      plain_(!problem.contention && !items.has_signals()),
      opening_(Timeline::most_items(problem)),
      free_(items.places()),
      signalled_(problem.n + 1) {}

double BlockingSerial::run(const Decision& decision, Timeline& timeline, bool times) {
  items_.collect(decision, timeline);
  begin();
  timeline.taken.resize(items_.count());
  if (plain_)
    append_all<true>(timeline, times);
  else
    append_all<false>(timeline, times);
  if (times) send_signals(timeline);
  return *std::max_element(free_.begin(), free_.begin() + problem_.d);
}

// One evaluation. It holds what it uses as plain pointers, which stay in registers.
template <int Levels, bool Plain, bool Times>
class BlockingSerial::Appender {
 public:
  Appender(BlockingSerial& decoder, Timeline& timeline)
      : count_(static_cast<uint32_t>(decoder.items_.count())),
        nobody_(decoder.items_.count()),
        items_(decoder.items_),
        synchronisation_(decoder.problem_.synchronisation),
        open_(count_ + 1, decoder.open_),
        item_(decoder.items_.items()),
        readers_(decoder.items_.readers()),
        opening_(decoder.opening_.data()),
        free_(decoder.free_.data()),
        signalled_(decoder.signalled_.data()),
        start_(timeline.start.data()),
        end_(timeline.end.data()) {}

  // Writes the items in the order in which they are taken. The rank behind all others stands for
  // none, so that there is always a next one.
  void run(int ops, const int32_t* item_at, int32_t* taken) {
    for (int op = 0; op < ops; ++op) open_.insert(opening_[op].rank, opening_[op].waits == 0);
    open_.insert(count_);
    next_ = open_.pop();
    for (uint32_t i = 0; i < count_; ++i) {
      const int32_t index = item_at[next_];
      next_ = open_.pop();
      append(taken[i] = index);
    }
  }

 private:
  void append(int index) {
    const auto& item = item_[index];
    double &source = free_[item.source], &target = free_[item.target];
    double start = std::max(source, target);
    if constexpr (!Plain)
      start = std::max(start, std::max(free_[item.channel], signalled_[item.op]));
    const double end = start + item.seconds;
    source = target = end;
    if constexpr (!Plain) free_[item.channel] = end;
    if constexpr (Times) {
      start_[index] = start;
      end_[index] = end;
    }
    // Few items have more readers than two, so that a guess at their number would often be wrong.
    const int first = item.first_reader, readers = item.last_reader - first;
    const int one = readers_[first], other = readers_[first + 1];
    arrive(readers > 0 ? one : nobody_);
    arrive(readers > 1 ? other : nobody_);
    for (int i = 2; i < readers; ++i) arrive(readers_[first + i]);
    if constexpr (!Plain) tell(item.op, end + synchronisation_);
  }

  void tell(int op, double time) {
    for (int i = items_.first_told(op); i < items_.first_told(op + 1); ++i) {
      const int reader = items_.told()[i];
      signalled_[reader] = std::max(signalled_[reader], time);
      arrive(reader);
    }
  }

  // A guess costs more than an instruction where all is in the cache; where it is not, a processor
  // that guesses waits for several reads at once.
  void arrive(int reader) {
    Opening& opening = opening_[reader];
    const bool opens = --opening.waits == 0;
    if constexpr (Levels == 2) {
      open(chosen(opens, opening.rank, count_));
    } else if (opens) {
      open(opening.rank);
      prefetch(item_ + reader);
    }
  }
  // The next item is apart from the queue, for no read of it needs to wait for what opens now.
  void open(uint32_t rank) {
    open_.insert(std::max(next_, rank));
    next_ = std::min(next_, rank);
  }

  const uint32_t count_;
  const int32_t nobody_;  // an item that never opens
  const BlockingItems& items_;
  const double synchronisation_;
  RankQueue<Levels> open_;
  uint32_t next_ = 0;
  const BlockingItems::Item* const item_;
  const int32_t* const readers_;
  Opening* const opening_;
  double *const free_, *const signalled_;
  double *const start_, *const end_;
};

template <bool Plain>
void BlockingSerial::append_all(Timeline& timeline, bool times) {
  if (times)
    append_all<Plain, true>(timeline);
  else
    append_all<Plain, false>(timeline);
}

template <bool Plain, bool Times>
void BlockingSerial::append_all(Timeline& timeline) {
  const auto append = [&](auto&& appender) {
    appender.run(problem_.n, items_.order().items(), timeline.taken.data());
  };
  if (items_.count() < 1 << 12)
    append(Appender<2, Plain, Times>(*this, timeline));
  else if (items_.count() < 1 << 18)
    append(Appender<3, Plain, Times>(*this, timeline));
  else
    append(Appender<5, Plain, Times>(*this, timeline));
}

void BlockingSerial::begin() {
  std::fill(free_.begin(), free_.end(), 0.0);
  if (!plain_) std::fill(signalled_.begin(), signalled_.end(), 0.0);
  const uint32_t* const rank = items_.order().ranks();
  for (int op = 0; op < problem_.n; ++op) opening_[op] = {items_.needs()[op], rank[op]};
  for (int item = problem_.n; item < items_.count(); ++item) opening_[item] = {1, rank[item]};
  opening_[items_.count()] = {0, 0};
}

// Signals that take time leave when their producers end.
void BlockingSerial::send_signals(Timeline& timeline) const {
  for (int index = items_.count(); index < timeline.items(); ++index) {
    const int tensor = timeline.transfers()[index - problem_.n].tensor;
    timeline.start[index] = timeline.end[problem_.producer[tensor]];
    timeline.end[index] = timeline.start[index] + problem_.synchronisation;
  }
}

}  // namespace situate::sim
