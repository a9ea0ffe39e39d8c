#include "simulation/blocking/blocking_eager.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "simulation/rank_queue.h"

namespace situate::sim {

namespace {
constexpr auto later = [](const auto& a, const auto& b) { return a.time > b.time; };
constexpr uint32_t none = std::numeric_limits<uint32_t>::max();
}  // namespace

BlockingEager::BlockingEager(const Problem& problem, BlockingItems& items)
    : problem_(problem),
      items_(items),
      needs_(problem.n),
      running_(problem.d),
      device_busy_(problem.d),
      channel_busy_(problem.channels),
      ready_(problem.d),
      wanted_(static_cast<size_t>(problem.d) * problem.d),
      first_wanted_(wanted_.size()) {
  for (int op = 0; op < problem.n; ++op)
    needs_[op] = static_cast<int32_t>(problem.inputs_of(op).size());
}

// One evaluation.
template <int Levels>
class BlockingEager::Loop {
 public:
  Loop(BlockingEager& decoder, const Decision& decision, Timeline& timeline)
      : p_(decoder.problem_),
        s_(decoder),
        items_(decoder.items_),
        placement_(decision.placement),
        timeline_(timeline) {
    s_.pending_ = s_.needs_;
    s_.events_.clear();
    s_.new_.clear();
    std::fill(s_.device_busy_.begin(), s_.device_busy_.end(), 0);
    std::fill(s_.channel_busy_.begin(), s_.channel_busy_.end(), 0);
    std::fill(s_.first_wanted_.begin(), s_.first_wanted_.end(), none);
    for (auto& heap : s_.wanted_) heap.clear();
    for (auto& room : s_.ready_) ready_.emplace_back(items_.count(), room);
    for (int op = 0; op < p_.n; ++op) open(op, s_.needs_[op] == 0);
  }

  double run() {
    double now = 0;
    start_all(now);
    while (!s_.events_.empty()) {
      now = s_.events_.front().time;
      while (due(now)) {
        do end(pop());
        while (due(now));
        for (const int transfer : s_.new_) want(transfer, now);
        s_.new_.clear();
      }
      start_all(now);
    }
    return now;
  }

 private:
  bool due(double now) const { return !s_.events_.empty() && s_.events_.front().time == now; }
  void push(double time, int what) {
    s_.events_.push_back({time, what});
    std::push_heap(s_.events_.begin(), s_.events_.end(), later);
  }
  int pop() {
    std::pop_heap(s_.events_.begin(), s_.events_.end(), later);
    const int what = s_.events_.back().what;
    s_.events_.pop_back();
    return what;
  }
  size_t pair(int source, int target) const { return static_cast<size_t>(source) * p_.d + target; }

  void open(int op, bool condition) {
    ready_[placement_[op]].insert(items_.order().rank_of(op), condition);
  }
  void arrive(int op, bool condition) {
    s_.pending_[op] -= condition;
    open(op, condition & (s_.pending_[op] == 0));
  }

  void end(int what) {
    if (what >= p_.d)
      end_transfer(timeline_.transfers()[what - p_.d]);
    else
      end_op(what);
  }
  void end_op(int here) {
    const int op = s_.running_[here];
    s_.device_busy_[here] = 0;
    const bool free_signals = p_.synchronisation == 0;
    for (const auto reader : items_.readers_of_op(op))
      arrive(reader.op, (reader.signal & free_signals) | (placement_[reader.op] == here));
    for (int t = items_.first_of(op); t < items_.first_of(op + 1); ++t) s_.new_.push_back(t);
    const auto transfers = timeline_.transfers();
    for (const int signal : items_.timed_signals_of(op))
      for (int t = timeline_.first_transfer(signal); t >= 0; t = transfers[t].next_of_tensor)
        s_.new_.push_back(t);
  }
  void end_transfer(const Transfer& transfer) {
    if (!p_.signal[transfer.tensor]) {
      s_.device_busy_[transfer.source] = s_.device_busy_[transfer.target] = 0;
      s_.channel_busy_[p_.channel[pair(transfer.source, transfer.target)]] = 0;
    }
    for (const auto reader : items_.readers_of_tensor(transfer.tensor))
      arrive(reader.op, placement_[reader.op] == transfer.target);
  }

  // Makes a requested transfer pending; a signal leaves at once.
  void want(int index, double now) {
    const auto& transfer = timeline_.transfers()[index];
    if (p_.signal[transfer.tensor]) {
      run_from(now, p_.n + index, p_.synchronisation, p_.d + index);
      return;
    }
    const size_t of_pair = pair(transfer.source, transfer.target);
    auto& heap = s_.wanted_[of_pair];
    heap.push_back(items_.order().rank_of(p_.n + index));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
    s_.first_wanted_[of_pair] = heap.front();
  }

  // The first rank of all ops on idle devices and transfers between idle devices.
  uint32_t best_startable() const {
    uint32_t best = none;
    for (int device = 0; device < p_.d; ++device) {
      const uint32_t busy = s_.device_busy_[device];
      if (busy) continue;
      best = std::min(best, ready_[device].first());
      for (int target = 0; target < p_.d; ++target) {
        const size_t of_pair = pair(device, target);
        const uint32_t first = s_.first_wanted_[of_pair] | s_.device_busy_[target];
        if (first < best && !s_.channel_busy_[p_.channel[of_pair]]) best = first;
      }
    }
    return best;
  }
  void start_all(double now) {
    for (uint32_t rank = best_startable(); rank != none; rank = best_startable()) {
      const int item = items_.order().item_at(rank);
      timeline_.taken.push_back(item);
      if (item < p_.n)
        start_op(item, now);
      else
        start_transfer(item - p_.n, now);
    }
  }
  void start_op(int op, double now) {
    const int device = placement_[op];
    ready_[device].pop();
    s_.running_[device] = op;
    s_.device_busy_[device] = none;
    run_from(now, op, p_.op_seconds(op, device), device);
  }
  void start_transfer(int index, double now) {
    const auto& transfer = timeline_.transfers()[index];
    const size_t of_pair = pair(transfer.source, transfer.target);
    auto& heap = s_.wanted_[of_pair];
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    s_.first_wanted_[of_pair] = heap.empty() ? none : heap.front();
    s_.device_busy_[transfer.source] = s_.device_busy_[transfer.target] = none;
    s_.channel_busy_[p_.channel[of_pair]] = p_.contention ? none : 0;
    run_from(now, p_.n + index,
             p_.transfer_seconds(transfer.tensor, transfer.source, transfer.target), p_.d + index);
  }
  void run_from(double now, int item, double seconds, int event) {
    timeline_.start[item] = now;
    timeline_.end[item] = now + seconds;
    push(now + seconds, event);
  }

  const Problem& p_;
  BlockingEager& s_;
  const BlockingItems& items_;
  const int32_t* const placement_;
  Timeline& timeline_;
  std::vector<RankQueue<Levels>> ready_;  // ops of each device
};

double BlockingEager::run(const Decision& decision, Timeline& timeline) {
  items_.collect(decision, timeline);
  if (items_.count() <= 1 << 12) return Loop<2>(*this, decision, timeline).run();
  if (items_.count() <= 1 << 18) return Loop<3>(*this, decision, timeline).run();
  return Loop<5>(*this, decision, timeline).run();
}

}  // namespace situate::sim
