// The blocking mode (REGAL, A.4): a transfer occupies its sender, its receiver and its channel.
// Memory is accounted for afterwards, from the schedule, as it is per step in either mode.
#include <algorithm>
#include <limits>
#include <tuple>

#include "simulation/priority_key.h"
#include "simulation/simulator.h"

namespace situate::sim {

namespace {

// What starts next: higher priority, then an op before a transfer, then the lower indices.
struct Item {
  float priority;
  bool transfer;
  int32_t index, target;  // op and -1, or tensor and target
  int32_t id;             // op or transfer

  bool before(const Item& other) const {
    if (priority != other.priority) return priority > other.priority;
    if (transfer != other.transfer) return other.transfer;
    return index != other.index ? index < other.index : target < other.target;
  }
};

constexpr auto worse = [](const Item& a, const Item& b) { return b.before(a); };

}  // namespace

// Event driven: a heap of pending transfers a pair of devices, one of ready ops a device.
double Simulator::blocking_eager() {
  const auto& p = problem_;
  for (auto& list : wanted_) list.clear();
  for (int op = 0; op < p.n; ++op)
    if (needs_[op] == 0) open(op);
  double now = 0;
  while (start_best_item(now)) {
  }
  while (!events_.empty()) {
    now = events_.front().time;
    while (!events_.empty() && events_.front().time == now) {
      do {
        release(pop());
      } while (!events_.empty() && events_.front().time == now);
      for (const int request : requests_) want(request, now);
      requests_.clear();
    }
    while (start_best_item(now)) {
    }
  }
  return now;
}

// Ends an op or a transfer.
void Simulator::release(int what) {
  const auto& p = problem_;
  if (what < p.d) {
    const int op = running_[what];
    running_[what] = -1;
    send_outputs<false>(op);
    return;
  }
  const auto& transfer = transfers_[what - p.d];
  if (!p.signal[transfer.tensor]) {
    running_[transfer.source] = running_[transfer.target] = -1;
    channels_[p.channel[static_cast<size_t>(transfer.source) * p.d + transfer.target]].busy = false;
  }
  for (const int consumer : p.consumers_of(transfer.tensor))
    if (decision_.placement[consumer] == transfer.target) arrive(consumer);
}

// Makes a requested transfer pending; a signal leaves at once.
void Simulator::want(int request, double now) {
  const auto& p = problem_;
  auto& transfer = transfers_[request];
  if (!p.signal[transfer.tensor]) {
    auto& heap = wanted_[static_cast<size_t>(transfer.source) * p.d + transfer.target];
    heap.push_back(request);
    std::push_heap(heap.begin(), heap.end(), goes_behind());
    return;
  }
  transfer.start = now;
  transfer.end = now + p.synchronisation;
  push(transfer.end, p.d + request);
}

bool Simulator::start_best_item(double now) {
  const auto& p = problem_;
  Item best{-std::numeric_limits<float>::infinity(), true, std::numeric_limits<int32_t>::max(), -1,
            -1};
  for (int device = 0; device < p.d; ++device) {
    if (running_[device] >= 0) continue;
    if (!ready_[device].empty()) {
      const int op = index_of(ready_[device].front());
      const Item item{decision_.priority[op], false, op, -1, op};
      if (item.before(best)) best = item;
    }
    for (int target = 0; target < p.d; ++target) {
      const size_t pair = static_cast<size_t>(device) * p.d + target;
      if (wanted_[pair].empty() || running_[target] >= 0 || channels_[p.channel[pair]].busy)
        continue;
      const int t = wanted_[pair].front();
      const Item item{transfers_[t].priority, true, transfers_[t].tensor, target, t};
      if (item.before(best)) best = item;
    }
  }
  if (best.id < 0) return false;
  if (!best.transfer) {
    const int device = decision_.placement[best.id];
    running_[device] = take_best(device);
    start_[best.id] = now;
    end_[best.id] = now + p.op_seconds(best.id, device);
    push(end_[best.id], device);
    return true;
  }
  auto& transfer = transfers_[best.id];
  const size_t pair = static_cast<size_t>(transfer.source) * p.d + transfer.target;
  std::pop_heap(wanted_[pair].begin(), wanted_[pair].end(), goes_behind());
  wanted_[pair].pop_back();
  running_[transfer.source] = running_[transfer.target] = p.n + best.id;
  channels_[p.channel[pair]].busy = p.contention;
  transfer.start = now;
  transfer.end = now + p.transfer_seconds(transfer.tensor, transfer.source, transfer.target);
  push(transfer.end, p.d + best.id);
  return true;
}

// Items are appended in priority-topological order; `pending_` counts what an op still depends on.
double Simulator::blocking_serial() {
  const auto& p = problem_;
  std::vector<double> device_free(p.d, 0), channel_free(p.channels, 0), arrival(p.n, 0);
  std::vector<Item> heap;
  double makespan = 0;
  const auto enter = [&](const Item& item) {
    heap.push_back(item);
    std::push_heap(heap.begin(), heap.end(), worse);
  };
  const auto settle = [&](int consumer, double time) {
    arrival[consumer] = std::max(arrival[consumer], time);
    if (--pending_[consumer] == 0)
      enter({decision_.priority[consumer], false, consumer, -1, consumer});
  };
  for (int op = 0; op < p.n; ++op)
    if (needs_[op] == 0) enter({decision_.priority[op], false, op, -1, op});
  while (!heap.empty()) {
    const Item item = heap.front();
    std::pop_heap(heap.begin(), heap.end(), worse);
    heap.pop_back();
    if (item.transfer) {
      auto& transfer = transfers_[item.id];
      const int c = p.channel[static_cast<size_t>(transfer.source) * p.d + transfer.target];
      double& free = channel_free[c];
      transfer.start = std::max({device_free[transfer.source], device_free[transfer.target], free,
                                 end_[p.producer[transfer.tensor]]});
      transfer.end =
          transfer.start + p.transfer_seconds(transfer.tensor, transfer.source, transfer.target);
      device_free[transfer.source] = device_free[transfer.target] = transfer.end;
      if (p.contention) free = transfer.end;
      makespan = std::max(makespan, transfer.end);
      for (const int consumer : p.consumers_of(transfer.tensor))
        if (decision_.placement[consumer] == transfer.target) settle(consumer, transfer.end);
      continue;
    }
    const int op = item.id, here = decision_.placement[op];
    start_[op] = std::max(device_free[here], arrival[op]);
    end_[op] = device_free[here] = start_[op] + p.op_seconds(op, here);
    makespan = std::max(makespan, end_[op]);
    for (const int tensor : p.outputs_of(op)) {
      for (const int consumer : p.consumers_of(tensor)) {
        const int there = decision_.placement[consumer];
        if (there == here || (p.signal[tensor] && p.synchronisation == 0)) {
          settle(consumer, end_[op]);
          continue;
        }
        int& transfer = slot_[there];
        if (transfer < 0) transfer = add_transfer(tensor, there, decision_.priority[consumer]);
        transfers_[transfer].priority =
            std::max(transfers_[transfer].priority, decision_.priority[consumer]);
      }
      for (int t = first_transfer_[tensor]; t >= 0; t = transfers_[t].next_of_tensor) {
        auto& transfer = transfers_[t];
        slot_[transfer.target] = -1;
        if (decision_.transfer_priority)
          transfer.priority =
              decision_.transfer_priority[static_cast<size_t>(tensor) * p.d + transfer.target];
        if (p.signal[tensor]) {
          transfer.start = end_[op];
          transfer.end = end_[op] + p.synchronisation;
          makespan = std::max(makespan, transfer.end);
          for (const int consumer : p.consumers_of(tensor))
            if (decision_.placement[consumer] == transfer.target) settle(consumer, transfer.end);
        } else {
          enter({transfer.priority, true, tensor, transfer.target, t});
        }
      }
    }
  }
  return makespan;
}

// Sums what appears and vanishes at each instant; only what lasts counts.
void Simulator::peak_over_time(double makespan, int64_t* peak) {
  const auto& p = problem_;
  struct Change {
    double time;
    int32_t device;
    int64_t bytes;
  };
  std::vector<Change> changes;
  const auto hold = [&](int device, double from, double to, int64_t bytes) {
    if (bytes == 0 || from == to) return;
    changes.push_back({from, device, bytes});
    changes.push_back({to, device, -bytes});
  };
  for (int op = 0; op < p.n; ++op)
    hold(decision_.placement[op], start_[op], end_[op], p.workspace[op]);
  for (int tensor = 0; tensor < p.m; ++tensor) {
    if (p.size[tensor] == 0) continue;
    const int producer = p.producer[tensor], here = decision_.placement[producer];
    double last = p.output[tensor] ? makespan : end_[producer];
    for (const int consumer : p.consumers_of(tensor))
      if (decision_.placement[consumer] == here) last = std::max(last, end_[consumer]);
    for (int t = first_transfer_[tensor]; t >= 0; t = transfers_[t].next_of_tensor) {
      const auto& transfer = transfers_[t];
      last = std::max(last, transfer.end);
      double there = transfer.end;
      for (const int consumer : p.consumers_of(tensor))
        if (decision_.placement[consumer] == transfer.target)
          there = std::max(there, end_[consumer]);
      hold(transfer.target, transfer.start, there, p.size[tensor]);
    }
    if (!p.resident[tensor]) hold(here, start_[producer], last, p.size[tensor]);
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.time < b.time; });
  for (size_t i = 0; i < changes.size();) {
    const double now = changes[i].time;
    for (; i < changes.size() && changes[i].time == now; ++i)
      used_[changes[i].device] += changes[i].bytes;
    for (int device = 0; device < p.d; ++device)
      peak[device] = std::max(peak[device], used_[device]);
  }
}

// REGAL's measure: use after every item, in the order of start, end and dependency.
void Simulator::peak_per_step(int64_t* peak) {
  const auto& p = problem_;
  struct Step {
    double start, end;
    int32_t place, tensor, target, id;  // op: tensor -1; transfer: its producer's place
  };
  std::vector<Step> steps;
  for (int op = 0; op < p.n; ++op)
    steps.push_back({start_[op], end_[op], p.place_in_order[op], -1, -1, op});
  for (size_t t = 0; t < transfers_.size(); ++t) {
    const auto& x = transfers_[t];
    if (p.signal[x.tensor]) continue;
    const int place = p.place_in_order[p.producer[x.tensor]];
    steps.push_back({x.start, x.end, place, x.tensor, x.target, static_cast<int32_t>(t)});
  }
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return std::tie(a.start, a.end, a.place, a.tensor, a.target) <
           std::tie(b.start, b.end, b.place, b.tensor, b.target);
  });
  for (auto& transfer : transfers_) transfer.waiting = 0;
  for (int tensor = 0; tensor < p.m; ++tensor) {
    const int here = decision_.placement[p.producer[tensor]];
    int holders = 1;  // the producer itself
    for (int t = first_transfer_[tensor]; t >= 0; t = transfers_[t].next_of_tensor) ++holders;
    for (const int consumer : p.consumers_of(tensor)) {
      const int there = decision_.placement[consumer];
      if (there == here) {
        ++holders;
        continue;
      }
      for (int t = first_transfer_[tensor]; t >= 0; t = transfers_[t].next_of_tensor)
        if (transfers_[t].target == there) ++transfers_[t].waiting;
    }
    holders_[tensor] = holders;
  }
  const auto note = [&](int device) { peak[device] = std::max(peak[device], used_[device]); };
  for (const auto& step : steps) {
    if (step.tensor >= 0) {
      used_[step.target] += p.size[step.tensor];
      note(step.target);
      free_if_done(step.tensor);
      continue;
    }
    const int device = decision_.placement[step.id];
    used_[device] += p.start_bytes[step.id];
    note(device);
    used_[device] -= p.workspace[step.id];
    for (const int tensor : p.outputs_of(step.id)) free_if_done(tensor);
    free_inputs<true>(step.id);
  }
}

}  // namespace situate::sim
