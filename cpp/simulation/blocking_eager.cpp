#include "simulation/blocking_eager.h"

#include <algorithm>
#include <functional>
#include <limits>

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
      channel_busy_(problem.channels),
      ready_(problem.d),
      wanted_(static_cast<size_t>(problem.d) * problem.d) {
  for (int op = 0; op < problem.n; ++op)
    needs_[op] = static_cast<int32_t>(problem.inputs_of(op).size());
}

double BlockingEager::run(const Decision& decision, Timeline& timeline) {
  timeline_ = &timeline;
  decision_ = decision;
  items_.collect(decision, timeline);
  reset();
  double now = 0;
  while (start_best(now)) {
  }
  while (!events_.empty()) {
    now = events_.front().time;
    while (!events_.empty() && events_.front().time == now) {
      do {
        end(pop());
      } while (!events_.empty() && events_.front().time == now);
      for (const int transfer : new_) want(transfer, now);
      new_.clear();
    }
    while (start_best(now)) {
    }
  }
  return now;
}

void BlockingEager::reset() {
  pending_ = needs_;
  events_.clear();
  new_.clear();
  std::fill(running_.begin(), running_.end(), -1);
  std::fill(channel_busy_.begin(), channel_busy_.end(), 0);
  for (auto& heap : ready_) heap.clear();
  for (auto& heap : wanted_) heap.clear();
  for (int op = 0; op < problem_.n; ++op)
    if (needs_[op] == 0) open(op);
}

void BlockingEager::push(double time, int what) {
  events_.push_back({time, what});
  std::push_heap(events_.begin(), events_.end(), later);
}

// What is due next.
int BlockingEager::pop() {
  std::pop_heap(events_.begin(), events_.end(), later);
  const int what = events_.back().what;
  events_.pop_back();
  return what;
}

void BlockingEager::enter(Ranks& heap, int item) {
  heap.push_back(items_.order().rank_of(item));
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

void BlockingEager::end(int what) {
  if (what >= problem_.d) {
    end_transfer(timeline_->transfers()[what - problem_.d]);
    return;
  }
  end_op(running_[what]);
  running_[what] = -1;
}

void BlockingEager::end_op(int op) {
  const int here = decision_.placement[op];
  const bool free_signals = problem_.synchronisation == 0;
  for (const auto reader : items_.readers_of_op(op))
    if ((reader.signal && free_signals) || decision_.placement[reader.op] == here)
      arrive(static_cast<int>(reader.op));
  for (int t = items_.first_of(op); t < items_.first_of(op + 1); ++t) new_.push_back(t);
  const auto transfers = timeline_->transfers();
  for (const int signal : items_.timed_signals_of(op))
    for (int t = timeline_->first_transfer(signal); t >= 0; t = transfers[t].next_of_tensor)
      new_.push_back(t);
}

void BlockingEager::end_transfer(const Transfer& transfer) {
  if (!problem_.signal[transfer.tensor]) {
    running_[transfer.source] = running_[transfer.target] = -1;
    channel_busy_[problem_.channel[pair(transfer.source, transfer.target)]] = 0;
  }
  for (const int consumer : problem_.consumers_of(transfer.tensor))
    if (decision_.placement[consumer] == transfer.target) arrive(consumer);
}

// Makes a requested transfer pending; a signal leaves at once.
void BlockingEager::want(int index, double now) {
  const auto& transfer = timeline_->transfers()[index];
  if (!problem_.signal[transfer.tensor]) {
    enter(wanted_[pair(transfer.source, transfer.target)], problem_.n + index);
    return;
  }
  run_from(now, problem_.n + index, problem_.synchronisation);
  push(now + problem_.synchronisation, problem_.d + index);
}

// The first rank of all ops on idle devices and transfers between idle devices.
uint32_t BlockingEager::best_startable() const {
  const auto& p = problem_;
  uint32_t best = none;
  for (int device = 0; device < p.d; ++device) {
    if (running_[device] >= 0) continue;
    if (!ready_[device].empty()) best = std::min(best, ready_[device].front());
    for (int target = 0; target < p.d; ++target) {
      const auto& heap = wanted_[pair(device, target)];
      if (heap.empty() || running_[target] >= 0 || channel_busy_[p.channel[pair(device, target)]])
        continue;
      best = std::min(best, heap.front());
    }
  }
  return best;
}

bool BlockingEager::start_best(double now) {
  const uint32_t rank = best_startable();
  if (rank == none) return false;
  const int item = items_.order().item_at(rank);
  timeline_->taken.push_back(item);
  if (item < problem_.n)
    start_op(item, now);
  else
    start_transfer(item - problem_.n, now);
  return true;
}

void BlockingEager::run_from(double now, int item, double seconds) {
  timeline_->start[item] = now;
  timeline_->end[item] = now + seconds;
}

void BlockingEager::start_op(int op, double now) {
  const int device = decision_.placement[op];
  auto& heap = ready_[device];
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  heap.pop_back();
  running_[device] = op;
  run_from(now, op, problem_.op_seconds(op, device));
  push(timeline_->end[op], device);
}

void BlockingEager::start_transfer(int index, double now) {
  const auto& p = problem_;
  const auto& transfer = timeline_->transfers()[index];
  const size_t of_pair = pair(transfer.source, transfer.target);
  auto& heap = wanted_[of_pair];
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  heap.pop_back();
  running_[transfer.source] = running_[transfer.target] = p.n + index;
  channel_busy_[p.channel[of_pair]] = p.contention;
  run_from(now, p.n + index,
           p.transfer_seconds(transfer.tensor, transfer.source, transfer.target));
  push(timeline_->end[p.n + index], p.d + index);
}

}  // namespace situate::sim
