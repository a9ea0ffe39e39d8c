#include "simulation/blocking/blocking_serial.h"

#include <algorithm>

namespace situate::sim {

namespace {
inline void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#endif
}
}  // namespace

BlockingSerial::BlockingSerial(const Problem& problem, BlockingItems& items)
    : problem_(problem),
      items_(items),
      plain_(!problem.contention &&
             std::count(problem.signal.begin(), problem.signal.end(), 1) == 0),
      needs_(problem.n),
      item_(Timeline::most_items(problem)),
      opening_(item_.size()),
      free_(2 * problem.d + problem.channels),
      signalled_(problem.n + 1) {
  for (int op = 0; op < problem.n; ++op)
    needs_[op] = static_cast<int32_t>(problem.inputs_of(op).size());
}

double BlockingSerial::run(const Decision& decision, Timeline& timeline, bool times) {
  items_.collect(decision, timeline);
  std::fill(free_.begin(), free_.end(), 0.0);
  add_ops(decision);
  add_transfers(timeline);
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
        item_(decoder.item_.data()),
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
    const Item& item = item_[index];
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
      open(opens ? opening.rank : count_);
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
  const Item* const item_;
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

void BlockingSerial::add_ops(const Decision& decision) {
  const int own_channels = problem_.d + problem_.channels;
  const uint32_t* const rank = items_.order().ranks();
  for (int op = 0; op < problem_.n; ++op) {
    const int here = decision.placement[op];
    opening_[op] = {needs_[op], rank[op]};
    item_[op] = {.seconds = problem_.op_seconds(op, here),
                 .source = here,
                 .target = here,
                 .first_reader = items_.first_reader(op),
                 .last_reader = items_.last_reader(op),
                 .channel = own_channels + here,
                 .op = op};
  }
  if (!plain_) std::fill(signalled_.begin(), signalled_.end(), 0.0);
}

void BlockingSerial::add_transfers(const Timeline& timeline) {
  const auto& p = problem_;
  const uint32_t* const rank = items_.order().ranks();
  opening_[items_.count()] = {0, 0};
  for (int index = p.n; index < items_.count(); ++index) {
    const auto& transfer = timeline.transfers()[index - p.n];
    const size_t pair = static_cast<size_t>(transfer.source) * p.d + transfer.target;
    opening_[index] = {1, rank[index]};
    item_[index] = {
        .seconds = p.transfer_seconds(transfer.tensor, transfer.source, transfer.target),
        .source = transfer.source,
        .target = transfer.target,
        .first_reader = items_.first_reader(index),
        .last_reader = items_.last_reader(index),
        .channel = p.d + (p.contention ? p.channel[pair] : p.channels + transfer.source),
        .op = p.n};
  }
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
