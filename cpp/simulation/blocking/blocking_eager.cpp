#include "simulation/blocking/blocking_eager.h"

#include <algorithm>
#include <limits>

#include "simulation/rank_queue.h"

namespace situate::sim {

namespace {
constexpr auto later = [](const auto& a, const auto& b) { return a.end > b.end; };
constexpr uint32_t none = std::numeric_limits<uint32_t>::max();
constexpr double never = std::numeric_limits<double>::infinity();
}  // namespace

BlockingEager::BlockingEager(const Problem& problem, BlockingItems& items)
    : problem_(problem),
      items_(items),
      needs_(problem.n),
      running_(problem.d),
      until_(problem.d),
      device_busy_(problem.d),
      channel_busy_(problem.channels),
      ready_(problem.d),
      wanted_(static_cast<size_t>(problem.d) * problem.d),
      first_ready_(problem.d),
      first_wanted_(wanted_.size()),
      first_of_pair_(wanted_.size() + 2),
      next_of_pair_(wanted_.size() + 1),
      pair_of_(Timeline::most_items(problem), static_cast<int32_t>(wanted_.size())),
      place_in_pair_(pair_of_.size()),
      rank_in_pair_(pair_of_.size()) {
  for (int op = 0; op < problem.n; ++op)
    needs_[op] = static_cast<int32_t>(problem.inputs_of(op).size());
}

void BlockingEager::rank_by_pair(const Timeline& timeline) {
  const int n = problem_.n, count = items_.count();
  std::fill(first_of_pair_.begin(), first_of_pair_.end(), 0);
  for (int item = n; item < count; ++item) {
    const auto& transfer = timeline.transfers()[item - n];
    pair_of_[item] = static_cast<int32_t>(pair(transfer.source, transfer.target));
    ++first_of_pair_[pair_of_[item] + 1];
  }
  for (size_t of = 1; of < first_of_pair_.size(); ++of)
    first_of_pair_[of] += first_of_pair_[of - 1];
  std::copy_n(first_of_pair_.begin(), next_of_pair_.size(), next_of_pair_.begin());
  for (int rank = 0; rank < count; ++rank) {
    const int item = items_.order().item_at(rank), of = pair_of_[item];
    const int place = next_of_pair_[of]++;
    rank_in_pair_[place] = static_cast<uint32_t>(rank);
    place_in_pair_[item] = place - first_of_pair_[of];
  }
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
    s_.signals_.clear();
    s_.new_.clear();
    std::fill(s_.until_.begin(), s_.until_.end(), never);
    std::fill(s_.device_busy_.begin(), s_.device_busy_.end(), 0);
    std::fill(s_.channel_busy_.begin(), s_.channel_busy_.end(), 0);
    std::fill(s_.first_ready_.begin(), s_.first_ready_.end(), none);
    std::fill(s_.first_wanted_.begin(), s_.first_wanted_.end(), none);
    s_.rank_by_pair(timeline);
    for (auto& room : s_.ready_) ready_.emplace_back(items_.count(), room);
    for (size_t of = 0; of < s_.wanted_.size(); ++of)
      wanted_.emplace_back(s_.first_of_pair_[of + 1] - s_.first_of_pair_[of], s_.wanted_[of]);
    for (int op = 0; op < p_.n; ++op) open(op, s_.needs_[op] == 0);
  }

  double run() {
    double now = 0;
    start_all(now);
    for (double next = next_end(); next < never; next = next_end()) {
      now = next;
      for (int device = 0; device < p_.d; ++device)
        if (s_.until_[device] == now) end(device);
      while (!s_.signals_.empty() && s_.signals_.front().end == now) end_signal();
      for (const int transfer : s_.new_) want(transfer, now);
      s_.new_.clear();
      if (next_end() > now) start_all(now);
    }
    return now;
  }

 private:
  double next_end() const {
    const double of_devices = *std::min_element(s_.until_.begin(), s_.until_.end());
    return s_.signals_.empty() ? of_devices : std::min(of_devices, s_.signals_.front().end);
  }

  void open(int op, bool condition) {
    const int device = placement_[op];
    const uint32_t rank = items_.order().rank_of(op);
    ready_[device].insert(rank, condition);
    uint32_t& first = s_.first_ready_[device];
    first = std::min(first, condition ? rank : none);
  }
  void arrive(int op) { open(op, --s_.pending_[op] == 0); }

  // Ends what a device does; a transfer ends once, with its source.
  void end(int device) {
    const int item = s_.running_[device];
    if (item >= p_.n) {
      const auto& transfer = timeline_.transfers()[item - p_.n];
      if (transfer.source == device) end_transfer(item, transfer);
      return;
    }
    free(device);
    end_op(item);
  }
  void free(int device) {
    s_.until_[device] = never;
    s_.device_busy_[device] = 0;
  }
  void end_op(int op) {
    for (int i = items_.first_reader(op); i < items_.last_reader(op); ++i) {
      const int reader = items_.readers()[i];
      if (reader < p_.n)
        arrive(reader);
      else
        s_.new_.push_back(reader - p_.n);
    }
    if (p_.synchronisation == 0)
      for (int i = items_.first_told(op); i < items_.first_told(op + 1); ++i)
        arrive(items_.told()[i]);
    const auto transfers = timeline_.transfers();
    for (const int signal : items_.timed_signals_of(op))
      for (int t = timeline_.first_transfer(signal); t >= 0; t = transfers[t].next_of_tensor)
        s_.new_.push_back(t);
  }
  void end_transfer(int item, const Transfer& transfer) {
    free(transfer.source);
    free(transfer.target);
    if (p_.contention) s_.channel_busy_[channel(transfer.source, transfer.target)] = 0;
    for (int i = items_.first_reader(item); i < items_.last_reader(item); ++i)
      arrive(items_.readers()[i]);
  }
  void end_signal() {
    const auto& transfer = timeline_.transfers()[s_.signals_.front().transfer];
    std::pop_heap(s_.signals_.begin(), s_.signals_.end(), later);
    s_.signals_.pop_back();
    for (const int consumer : p_.consumers_of(transfer.tensor))
      if (placement_[consumer] == transfer.target) arrive(consumer);
  }
  int channel(int source, int target) const { return p_.channel[s_.pair(source, target)]; }

  // Makes a requested transfer pending; a signal leaves at once.
  void want(int index, double now) {
    const auto& transfer = timeline_.transfers()[index];
    const int item = p_.n + index;
    if (p_.signal[transfer.tensor]) {
      set_times(item, now, p_.synchronisation);
      s_.signals_.push_back({timeline_.end[item], index});
      std::push_heap(s_.signals_.begin(), s_.signals_.end(), later);
      return;
    }
    const int of = s_.pair_of_[item];
    wanted_[of].insert(s_.place_in_pair_[item]);
    uint32_t& first = s_.first_wanted_[of];
    first = std::min(first, items_.order().rank_of(item));
  }

  // The first rank of all ops on idle devices and transfers between idle devices.
  uint32_t best_startable() const {
    uint32_t best = none;
    for (int device = 0; device < p_.d; ++device) {
      const uint32_t busy = s_.device_busy_[device];
      best = std::min(best, s_.first_ready_[device] | busy);
      for (int target = 0; target < p_.d; ++target) {
        if (target == device) continue;
        uint32_t first = s_.first_wanted_[s_.pair(device, target)] | busy | s_.device_busy_[target];
        if (p_.contention) first |= s_.channel_busy_[channel(device, target)];
        best = std::min(best, first);
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
        start_transfer(item, now);
    }
  }
  void start_op(int op, double now) {
    const int device = placement_[op];
    ready_[device].pop();
    s_.first_ready_[device] = ready_[device].first();
    set_times(op, now, p_.op_seconds(op, device));
    occupy(device, op);
  }
  void start_transfer(int item, double now) {
    const auto& transfer = timeline_.transfers()[item - p_.n];
    const int of = s_.pair_of_[item];
    auto& queue = wanted_[of];
    queue.pop();
    s_.first_wanted_[of] =
        queue.empty() ? none : s_.rank_in_pair_[s_.first_of_pair_[of] + queue.first()];
    set_times(item, now, p_.transfer_seconds(transfer.tensor, transfer.source, transfer.target));
    occupy(transfer.source, item);
    occupy(transfer.target, item);
    if (p_.contention) s_.channel_busy_[channel(transfer.source, transfer.target)] = none;
  }
  void set_times(int item, double now, double seconds) {
    timeline_.start[item] = now;
    timeline_.end[item] = now + seconds;
  }
  void occupy(int device, int item) {
    s_.running_[device] = item;
    s_.until_[device] = timeline_.end[item];
    s_.device_busy_[device] = none;
  }

  const Problem& p_;
  BlockingEager& s_;
  const BlockingItems& items_;
  const int32_t* const placement_;
  Timeline& timeline_;
  std::vector<RankQueue<Levels>> ready_, wanted_;  // of each device; of each pair
};

double BlockingEager::run(const Decision& decision, Timeline& timeline) {
  items_.collect(decision, timeline);
  if (items_.count() <= 1 << 12) return Loop<2>(*this, decision, timeline).run();
  if (items_.count() <= 1 << 18) return Loop<3>(*this, decision, timeline).run();
  return Loop<5>(*this, decision, timeline).run();
}

}  // namespace situate::sim
