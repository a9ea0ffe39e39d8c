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
      needs_(problem.n),
      item_(Timeline::most_items(problem)),
      ops_(problem.n + 1),
      free_(2 * problem.d + problem.channels) {
  for (int op = 0; op < problem.n; ++op)
    needs_[op] = static_cast<int32_t>(problem.inputs_of(op).size());
}

double BlockingSerial::run(const Decision& decision, Timeline& timeline) {
  items_.collect(decision, timeline);
  std::fill(free_.begin(), free_.end(), 0.0);
  add_ops(decision);
  add_transfers(timeline);
  timeline.taken.resize(items_.count());
  if (items_.count() <= 1 << 12)
    append_all<2>(timeline);
  else if (items_.count() <= 1 << 18)
    append_all<3>(timeline);
  else
    append_all<5>(timeline);
  send_signals(timeline);
  return *std::max_element(timeline.end.begin(), timeline.end.begin() + timeline.items());
}

// One evaluation. It holds what it uses as plain pointers, which stay in registers.
template <int Levels>
class BlockingSerial::Appender {
 public:
  Appender(BlockingSerial& decoder, Timeline& timeline)
      : n_(decoder.problem_.n),
        synchronisation_(decoder.problem_.synchronisation),
        open_(decoder.items_.count(), decoder.open_),
        item_(decoder.item_.data()),
        ops_(decoder.ops_.data()),
        rank_(decoder.items_.order().ranks()),
        free_(decoder.free_.data()),
        start_(timeline.start.data()),
        end_(timeline.end.data()) {}

  void open_first(const std::vector<int32_t>& needs) {
    for (size_t op = 0; op < needs.size(); ++op) open_.insert(rank_[op], needs[op] == 0);
  }
  // Writes the items in the order in which they are taken.
  void run(const int32_t* item_at, int32_t* taken) {
    while (!open_.empty()) append(*taken++ = item_at[open_.pop()]);
  }

 private:
  void append(int index) {
    const Item& item = item_[index];
    double &source = free_[item.source], &target = free_[item.target],
           &channel = free_[item.channel];
    const double start =
        std::max(std::max(source, target), std::max(channel, ops_[item.after].arrival));
    const double end = start + item.seconds;
    start_[index] = start;
    end_[index] = ops_[std::min(index, n_)].arrival = source = target = channel = end;
    arrive(item, end);
    // Most items open one transfer or none.
    open(item.opens, rank_[item.opens], item.opens < item.last_opens);
    for (int opens = item.opens + 1; opens < item.last_opens; ++opens) open_.insert(rank_[opens]);
  }

  // Hands what is there at `time` to its consumers.
  void arrive(const Item& item, double time) {
    // By whether a consumer is on the target, and whether it reads a signal.
    const double arrival[] = {0, time + synchronisation_, time, time};
    for (auto reader = item.readers; reader != item.last_reader; ++reader) {
      Op& op = ops_[reader->op];
      const bool there = op.device == item.target, has_it = there | reader->signal;
      op.arrival = std::max(op.arrival, arrival[2 * there + reader->signal]);
      op.waits -= has_it;
      open(static_cast<int>(reader->op), op.rank, has_it & (op.waits == 0));
    }
  }

  // A guess costs more than an instruction where all is in the cache; where it is not, a processor
  // that guesses waits for several reads at once.
  void open(int index, uint32_t rank, bool condition) {
    if constexpr (Levels == 2) {
      open_.insert(rank, condition);
    } else if (condition) {
      open_.insert(rank);
      prefetch(item_ + index);
    }
  }

  const int n_;
  const double synchronisation_;
  RankQueue<Levels> open_;
  const Item* const item_;
  Op* const ops_;
  const uint32_t* const rank_;
  double* const free_;
  double *const start_, *const end_;
};

template <int Levels>
void BlockingSerial::append_all(Timeline& timeline) {
  Appender<Levels> appender(*this, timeline);
  appender.open_first(needs_);
  appender.run(items_.order().items(), timeline.taken.data());
}

void BlockingSerial::add_ops(const Decision& decision) {
  const int own_channels = problem_.d + problem_.channels;
  for (int op = 0; op < problem_.n; ++op) {
    const int here = decision.placement[op];
    const auto readers = items_.readers_of_op(op);
    const int first = items_.first_of(op), last = items_.first_of(op + 1);
    ops_[op] = {0, needs_[op], here, items_.order().rank_of(op)};
    item_[op] = {.seconds = problem_.op_seconds(op, here),
                 .source = here,
                 .target = here,
                 .channel = own_channels + here,
                 .after = op,
                 .opens = first < last ? problem_.n + first : 0,
                 .last_opens = first < last ? problem_.n + last : 0,
                 .readers = readers.data(),
                 .last_reader = readers.data() + readers.size()};
  }
}

void BlockingSerial::add_transfers(const Timeline& timeline) {
  const auto& p = problem_;
  for (int index = p.n; index < items_.count(); ++index) {
    const auto& transfer = timeline.transfers()[index - p.n];
    const size_t pair = static_cast<size_t>(transfer.source) * p.d + transfer.target;
    const auto readers = items_.readers_of_tensor(transfer.tensor);
    item_[index] = {
        .seconds = p.transfer_seconds(transfer.tensor, transfer.source, transfer.target),
        .source = transfer.source,
        .target = transfer.target,
        .channel = p.d + (p.contention ? p.channel[pair] : p.channels + transfer.source),
        .after = p.producer[transfer.tensor],
        .opens = 0,
        .last_opens = 0,
        .readers = readers.data(),
        .last_reader = readers.data() + readers.size()};
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
