#include "search/list_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>

namespace situate::search {

using problem::add_bytes;
using problem::Memory;

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// A partial schedule that grows op by op. Sources without work (parameters, inputs) wait until
// their first consumer is placed and go beside it.
class PartialSchedule {
 public:
  PartialSchedule(const Problem& problem, double room)
      : p_(problem),
        room_(problem.capacity),
        device_of_unit_(problem.units, -1),
        finish_(problem.n, 0),
        placed_(problem.n, 0),
        free_(problem.d, 0),
        channel_free_(problem.channels, 0),
        arrival_(static_cast<size_t>(problem.m) * problem.d, std::nan("")),
        used_(problem.d, 0),
        waiting_(problem.m),
        held_(problem.units, 0) {
    for (int tensor = 0; tensor < p_.m; ++tensor)
      waiting_[tensor] = static_cast<int32_t>(p_.consumers_of(tensor).size());
    for (int op = 0; op < p_.n; ++op) held_[p_.unit[op]] += p_.persistent[op];
    for (auto& bytes : room_) bytes = static_cast<int64_t>(static_cast<double>(bytes) * room);
  }

  bool waits(int op) const {
    if (!p_.inputs_of(op).empty() || !has_consumers(op)) return false;
    const double* row = p_.seconds.data() + static_cast<size_t>(op) * p_.d;
    return std::all_of(row, row + p_.d, [](double s) { return s == 0 || s == never; });
  }
  bool has_consumers(int op) const {
    const auto outputs = p_.outputs_of(op);
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](int t) { return !p_.consumers_of(t).empty(); });
  }
  bool placed(int op) const { return placed_[op]; }
  double finish(int op) const { return finish_[op]; }
  double device_free(int device) const { return free_[device]; }

  bool may_run(int op, int device) const {
    const int fixed = device_of_unit_[p_.unit[op]];
    return fixed >= 0 ? fixed == device : p_.may_run(p_.unit[op], device);
  }

  // When all inputs could be on the device, had nothing else to be sent before.
  double inputs_arrive(int op, int device) const {
    double latest = 0;
    for (const int tensor : p_.inputs_of(op)) {
      const int producer = p_.producer[tensor];
      if (!placed_[producer]) continue;  // waits, and goes where this op goes
      const int source = device_of_unit_[p_.unit[producer]];
      const double known = arrival_[static_cast<size_t>(tensor) * p_.d + device];
      latest = std::max(latest, source == device ? finish_[producer]
                                : known == known ? known
                                                 : send_time(tensor, source, device));
    }
    return latest;
  }

  // Bytes short on the device if the op went there.
  int64_t short_of(int op, int device) const {
    if (p_.memory == Memory::persistent && device_of_unit_[p_.unit[op]] >= 0) return 0;
    int64_t need = device_of_unit_[p_.unit[op]] < 0 ? held_[p_.unit[op]] : 0;
    if (p_.memory != Memory::persistent) need = add_bytes(need, p_.start_bytes[op]);
    for (const int tensor : p_.inputs_of(op)) {
      const int producer = p_.producer[tensor];
      if (!placed_[producer] && device_of_unit_[p_.unit[producer]] < 0 &&
          p_.unit[producer] != p_.unit[op])
        need = add_bytes(need, held_[p_.unit[producer]]);
      if (p_.memory != Memory::persistent && placed_[producer] &&
          device_of_unit_[p_.unit[producer]] != device &&
          std::isnan(arrival_[static_cast<size_t>(tensor) * p_.d + device]))
        need = add_bytes(need, p_.size[tensor]);
    }
    return std::max<int64_t>(0, add_bytes(used_[device], need) - room_[device]);
  }

  void commit(int op, int device) {
    for (const int tensor : p_.inputs_of(op)) {
      const int producer = p_.producer[tensor];
      if (!placed_[producer]) commit_source(producer, device);
    }
    double start = free_[device];
    for (const int tensor : p_.inputs_of(op)) start = std::max(start, receive(tensor, device));
    enter(op, device, start);
    for (const int tensor : p_.inputs_of(op)) release(tensor);
  }

  Listed listed() && {
    Listed result;
    result.order = std::move(order_);
    result.placement.resize(p_.n);
    for (int op = 0; op < p_.n; ++op) result.placement[op] = device_of_unit_[p_.unit[op]];
    return result;
  }

 private:
  double send_time(int tensor, int source, int device) const {
    const double seconds = p_.transfer_seconds(tensor, source, device);
    const double ready = finish_[p_.producer[tensor]];
    if (p_.signal[tensor] || !p_.contention) return ready + seconds;
    const int channel = p_.channel[static_cast<size_t>(source) * p_.d + device];
    return std::max(ready, channel_free_[channel]) + seconds;
  }

  double receive(int tensor, int device) {
    const int producer = p_.producer[tensor];
    const int source = device_of_unit_[p_.unit[producer]];
    if (source == device) return finish_[producer];
    double& arrival = arrival_[static_cast<size_t>(tensor) * p_.d + device];
    if (arrival == arrival) return arrival;
    arrival = send_time(tensor, source, device);
    if (!p_.signal[tensor] && p_.contention)
      channel_free_[p_.channel[static_cast<size_t>(source) * p_.d + device]] = arrival;
    if (p_.memory != Memory::persistent) used_[device] += p_.size[tensor];
    return arrival;
  }

  void commit_source(int op, int wanted) {
    int device = device_of_unit_[p_.unit[op]];
    if (device < 0) {
      device = wanted;
      for (int other = 0; !p_.may_run(p_.unit[op], device); ++other) device = other;
    }
    enter(op, device, 0);
  }

  void enter(int op, int device, double start) {
    int& fixed = device_of_unit_[p_.unit[op]];
    if (fixed < 0) used_[device] += held_[p_.unit[op]];
    fixed = device;
    placed_[op] = 1;
    finish_[op] = start + p_.op_seconds(op, device);
    free_[device] = std::max(free_[device], finish_[op]);
    order_.push_back(op);
    if (p_.memory == Memory::persistent) return;
    used_[device] += p_.start_bytes[op] - p_.workspace[op];
  }

  // The last consumer lets go of the tensor and of all its copies.
  void release(int tensor) {
    if (--waiting_[tensor] > 0 || p_.memory == Memory::persistent) return;
    const int home = device_of_unit_[p_.unit[p_.producer[tensor]]];
    if (!p_.resident[tensor] && !p_.output[tensor]) used_[home] -= p_.size[tensor];
    for (int device = 0; device < p_.d; ++device) {
      const double arrival = arrival_[static_cast<size_t>(tensor) * p_.d + device];
      if (arrival == arrival) used_[device] -= p_.size[tensor];
    }
  }

  const Problem& p_;
  std::vector<int64_t> room_;
  std::vector<int32_t> device_of_unit_;
  std::vector<double> finish_;
  std::vector<uint8_t> placed_;
  std::vector<double> free_, channel_free_;
  std::vector<double> arrival_;  // tensors x devices, NaN where it was not sent
  std::vector<int64_t> used_;
  std::vector<int32_t> waiting_;
  std::vector<int64_t> held_;  // persistent bytes of a unit
  std::vector<int32_t> order_;
};

double mean_transfer(const Problem& p, int tensor) {
  if (p.d < 2) return 0;
  double sum = 0;
  for (int a = 0; a < p.d; ++a)
    for (int b = 0; b < p.d; ++b)
      if (a != b) sum += p.transfer_seconds(tensor, a, b);
  return sum / (static_cast<double>(p.d) * (p.d - 1));
}

// The mean over pairs is linear in the size: two samples give it for every tensor.
std::vector<double> mean_transfers(const Problem& p) {
  double latency = 0, per_byte = 0;
  const double pairs = std::max(1.0, static_cast<double>(p.d) * (p.d - 1));
  for (int a = 0; a < p.d; ++a)
    for (int b = 0; b < p.d; ++b) {
      if (a == b) continue;
      latency += p.latency[static_cast<size_t>(a) * p.d + b] / pairs;
      per_byte += 1 / p.bandwidth[static_cast<size_t>(a) * p.d + b] / pairs;
    }
  std::vector<double> mean(p.m);
  for (int tensor = 0; tensor < p.m; ++tensor)
    mean[tensor] =
        p.own_seconds[tensor] == p.own_seconds[tensor] || p.signal[tensor]
            ? mean_transfer(p, tensor)
            : latency + per_byte * static_cast<double>(p.size[tensor]) + p.synchronisation;
  return mean;
}

}  // namespace

std::vector<double> upward_rank(const Problem& p) {
  const auto transfer = mean_transfers(p);
  std::vector<double> rank(p.n, 0);
  for (int i = p.n - 1; i >= 0; --i) {
    const int op = p.order[i];
    for (const int tensor : p.outputs_of(op))
      for (const int consumer : p.consumers_of(tensor))
        rank[op] = std::max(rank[op], transfer[tensor] + rank[consumer]);
    double sum = 0;
    int count = 0;
    for (int device = 0; device < p.d; ++device) {
      const double seconds = p.op_seconds(op, device);
      if (std::isfinite(seconds)) {
        sum += seconds;
        ++count;
      }
    }
    rank[op] += count ? sum / count : 0;
  }
  return rank;
}

Listed heft(const Problem& p, double room) {
  const auto rank = upward_rank(p);
  std::vector<int32_t> by_rank(p.n);
  std::iota(by_rank.begin(), by_rank.end(), 0);
  std::sort(by_rank.begin(), by_rank.end(), [&](int a, int b) {
    return rank[a] != rank[b] ? rank[a] > rank[b] : p.place_in_order[a] < p.place_in_order[b];
  });
  PartialSchedule partial(p, room);
  for (const int op : by_rank) {
    if (partial.waits(op)) continue;
    int best = -1;
    int64_t least_short = std::numeric_limits<int64_t>::max();
    double first_end = never;
    for (int device = 0; device < p.d; ++device) {
      if (!partial.may_run(op, device)) continue;
      const int64_t lacking = partial.short_of(op, device);
      if (lacking > least_short) continue;
      const double start = std::max(partial.device_free(device), partial.inputs_arrive(op, device));
      const double end = start + p.op_seconds(op, device);
      if (lacking < least_short || end < first_end || best < 0) {
        best = device;
        least_short = lacking;
        first_end = end;
      }
    }
    partial.commit(op, best);
  }
  return std::move(partial).listed();
}

namespace {

struct Candidate {
  double key;  // when its inputs arrive, or minus its rank
  int32_t op;
};
constexpr auto later = [](const Candidate& a, const Candidate& b) {
  return a.key != b.key ? a.key > b.key : a.op > b.op;
};
using Heap = std::priority_queue<Candidate, std::vector<Candidate>, decltype(later)>;

// What a device could run: ops whose inputs are still on their way, and ops that only wait for it.
struct Queue {
  Heap coming, waiting;

  void drop_placed(const PartialSchedule& partial, int device) {
    const auto stale = [&](const Heap& heap) {
      return !heap.empty() &&
             (partial.placed(heap.top().op) || !partial.may_run(heap.top().op, device));
    };
    while (stale(coming)) coming.pop();
    while (stale(waiting)) waiting.pop();
  }
  // Ops whose inputs are there by `now` wait for the device alone.
  void advance(double now, const std::vector<double>& rank) {
    while (!coming.empty() && coming.top().key <= now) {
      waiting.push({-rank[coming.top().op], coming.top().op});
      coming.pop();
    }
  }
};

}  // namespace

Listed etf(const Problem& p, double room) {
  const auto rank = upward_rank(p);
  PartialSchedule partial(p, room);
  std::vector<Queue> queues(p.d);
  std::vector<int32_t> missing(p.n, 0);
  const auto enter = [&](int op) {
    for (int device = 0; device < p.d; ++device)
      if (partial.may_run(op, device))
        queues[device].coming.push({partial.inputs_arrive(op, device), op});
  };
  int left = 0;
  for (int op = 0; op < p.n; ++op) {
    for (const int tensor : p.inputs_of(op)) missing[op] += !partial.waits(p.producer[tensor]);
    left += !partial.waits(op);
  }
  for (int op = 0; op < p.n; ++op)
    if (missing[op] == 0 && !partial.waits(op)) enter(op);
  while (left > 0) {
    int best = -1, best_device = -1;
    int64_t least_short = 0;
    double best_start = never;
    for (int device = 0; device < p.d; ++device) {
      auto& queue = queues[device];
      queue.drop_placed(partial, device);
      queue.advance(partial.device_free(device), rank);
      queue.drop_placed(partial, device);
      const bool waits = !queue.waiting.empty();
      if (!waits && queue.coming.empty()) continue;
      const int op = waits ? queue.waiting.top().op : queue.coming.top().op;
      const double start =
          std::max(partial.device_free(device), waits ? 0 : queue.coming.top().key);
      const int64_t lacking = partial.short_of(op, device);
      if (best >= 0 && lacking > least_short) continue;
      const bool sooner = start < best_start || (start == best_start && rank[op] > rank[best]);
      if (best < 0 || lacking < least_short || sooner) {
        best = op;
        best_device = device;
        best_start = start;
        least_short = lacking;
      }
    }
    partial.commit(best, best_device);
    --left;
    for (const int tensor : p.outputs_of(best))
      for (const int consumer : p.consumers_of(tensor))
        if (--missing[consumer] == 0) enter(consumer);
  }
  return std::move(partial).listed();
}

}  // namespace situate::search
