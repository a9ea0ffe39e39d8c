#include "simulation/blocking/blocking_eager.h"

#include <algorithm>
#include <utility>

#include "problem/sentinels.h"
#include "simulation/rank_queue.h"

namespace situate::sim {

namespace {
constexpr auto later = [](const auto& a, const auto& b) { return a.end > b.end; };
}  // namespace

BlockingEager::BlockingEager(const Problem& problem, BlockingItems& items)
    : problem_(problem),
      items_(items),
      between_two_(problem),
      room_(static_cast<size_t>(problem.d) * problem.d),
      first_(room_.size()),
      next_(room_.size()),
      rank_in_lane_(Timeline::most_items(problem) + 1),
      opening_(rank_in_lane_.size()),
      busy_(items.places()),
      running_(problem.d),
      until_(problem.d) {
  for (int source = 0; source < problem.d; ++source)
    for (int target = 0; target < problem.d; ++target)
      lanes_.push_back({items.channel(source, target), 0});
}

// Gives every item its place in its lane.
void BlockingEager::line_up() {
  const int n = problem_.n, count = items_.count();
  std::fill(next_.begin(), next_.end(), 0);
  for (int item = 0; item < count; ++item) {
    const auto& of = items_.items()[item];
    opening_[item].waits = item < n ? items_.needs()[item] : 1;
    opening_[item].lane = of.source * problem_.d + of.target;
    ++next_[opening_[item].lane];
  }
  int32_t first = 0;
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    lanes_[lane].first = first;
    first += std::exchange(next_[lane], first);
  }
  for (int rank = 0; rank < count; ++rank) {
    auto& opening = opening_[items_.order().item_at(rank)];
    const int32_t place = next_[opening.lane]++;
    opening.rank = rank_in_lane_[place] = static_cast<uint32_t>(rank);
    opening.place = static_cast<uint32_t>(place - lanes_[opening.lane].first);
  }
}

// One evaluation.
template <int Levels>
class BlockingEager::Loop {
 public:
  Loop(BlockingEager& decoder, const int32_t* placement, Timeline& timeline, bool times)
      : p_(decoder.problem_),
        s_(decoder),
        items_(decoder.items_),
        item_(decoder.items_.items()),
        opening_(decoder.opening_.data()),
        placement_(placement),
        timeline_(timeline),
        times_(times) {
    s_.line_up();
    s_.signals_.clear();
    std::fill(s_.until_.begin(), s_.until_.end(), never);
    std::fill(s_.busy_.begin(), s_.busy_.end(), 0);
    std::fill(s_.first_.begin(), s_.first_.end(), none);
    queues_.reserve(s_.lanes_.size());
    for (size_t lane = 0; lane < s_.lanes_.size(); ++lane)
      queues_.emplace_back(s_.next_[lane] - s_.lanes_[lane].first, s_.room_[lane]);
    for (int op = 0; op < p_.n; ++op) open(opening_[op], opening_[op].waits == 0);
  }

  double run() {
    double now = 0;
    start_all(now);
    for (double next = next_end(); next < never; next = next_end()) {
      now = next;
      for (int device = first_to_end(); s_.until_[device] == now; device = first_to_end())
        end(s_.running_[device], now);
      while (!s_.signals_.empty() && s_.signals_.front().end == now) end_signal();
      if (next_end() > now) start_all(now);
    }
    return now;
  }

 private:
  int first_to_end() const {
    int first = 0;
    for (int device = 1; device < p_.d; ++device)
      first = s_.until_[device] < s_.until_[first] ? device : first;
    return first;
  }
  double next_end() const {
    const double of_devices = *std::min_element(s_.until_.begin(), s_.until_.end());
    return s_.signals_.empty() ? of_devices : std::min(of_devices, s_.signals_.front().end);
  }

  void open(const Opening& opening, bool condition) {
    queues_[opening.lane].insert(opening.place, condition);
    uint32_t& first = s_.first_[opening.lane];
    first = std::min(first, opening.rank | -static_cast<uint32_t>(!condition));
  }
  void arrive(int item) {
    auto& opening = opening_[item];
    open(opening, --opening.waits == 0);
  }

  void end(int index, double now) {
    const auto& item = item_[index];
    s_.until_[item.source] = s_.until_[item.target] = never;
    idle_ += 1 + (item.source != item.target);
    s_.busy_[item.source] = s_.busy_[item.target] = s_.busy_[item.channel] = 0;
    for (int i = item.first_reader; i < item.last_reader; ++i) arrive(items_.readers()[i]);
    if (index < p_.n && items_.has_signals()) send_signals(index, now);
  }
  void send_signals(int op, double now) {
    if (p_.synchronisation == 0)
      for (int i = items_.first_told(op); i < items_.first_told(op + 1); ++i)
        arrive(items_.told()[i]);
    const auto transfers = timeline_.transfers();
    for (const int signal : items_.timed_signals_of(op))
      for (int t = timeline_.first_transfer(signal); t >= 0; t = transfers[t].next_of_tensor) {
        const double end = set_times(p_.n + t, now, p_.synchronisation);
        s_.signals_.push_back({end, t});
        std::push_heap(s_.signals_.begin(), s_.signals_.end(), later);
      }
  }
  void end_signal() {
    const auto& transfer = timeline_.transfers()[s_.signals_.front().transfer];
    std::pop_heap(s_.signals_.begin(), s_.signals_.end(), later);
    s_.signals_.pop_back();
    for (const int consumer : p_.consumers_of(transfer.tensor))
      if (placement_[consumer] == transfer.target) arrive(consumer);
  }

  // The first rank of all ops on idle devices and transfers between idle devices.
  uint32_t best_startable() const {
    uint32_t best = none;
    for (int source = 0; source < p_.d; ++source) {
      if (s_.busy_[source]) continue;
      for (int target = 0; target < p_.d; ++target) {
        const size_t lane = static_cast<size_t>(source) * p_.d + target;
        best =
            std::min(best, s_.first_[lane] | s_.busy_[target] | s_.busy_[s_.lanes_[lane].channel]);
      }
    }
    return best;
  }
  void start_all(double now) {
    while (idle_ > 0) {
      const uint32_t rank = best_startable();
      if (rank == none) return;
      const int item = items_.order().item_at(rank);
      timeline_.taken.push_back(item);
      start(item, now);
    }
  }
  void start(int index, double now) {
    const auto& item = item_[index];
    take_from(opening_[index].lane);
    idle_ -= 1 + (item.source != item.target);
    s_.running_[item.source] = s_.running_[item.target] = index;
    s_.until_[item.source] = s_.until_[item.target] = set_times(index, now, item.seconds);
    s_.busy_[item.source] = s_.busy_[item.target] = s_.busy_[item.channel] = none;
  }
  void take_from(int lane) {
    auto& queue = queues_[lane];
    queue.pop();
    const uint32_t next = queue.empty() ? 0 : queue.first();
    const uint32_t rank = s_.rank_in_lane_[s_.lanes_[lane].first + next];
    s_.first_[lane] = rank | -static_cast<uint32_t>(queue.empty());
  }
  // Returns the item's end.
  double set_times(int item, double now, double seconds) {
    if (times_) timeline_.start[item] = now;
    if (times_) timeline_.end[item] = now + seconds;
    return now + seconds;
  }

  const Problem& p_;
  BlockingEager& s_;
  const BlockingItems& items_;
  const BlockingItems::Item* const item_;
  Opening* const opening_;
  const int32_t* const placement_;
  Timeline& timeline_;
  const bool times_;
  int idle_ = p_.d;                        // devices
  std::vector<RankQueue<Levels>> queues_;  // of each lane
};

double BlockingEager::run(const Decision& decision, Timeline& timeline, bool times) {
  items_.collect(decision, timeline);
  if (problem_.d == 2 && !items_.has_timed_signals())
    return between_two_.run(items_, timeline, times);
  if (items_.count() <= 1 << 12) return Loop<2>(*this, decision.placement, timeline, times).run();
  if (items_.count() <= 1 << 18) return Loop<3>(*this, decision.placement, timeline, times).run();
  return Loop<5>(*this, decision.placement, timeline, times).run();
}

}  // namespace situate::sim
