// Blocking transfers (REGAL: A. Paliwal et al., ICLR 2020, A.4): a transfer occupies its sender,
// its receiver and its channel.
#include <algorithm>
#include <limits>

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

// The serial decoder: items are appended to the schedule in priority-topological order.
// `pending_` counts the inputs that an op still waits for.
class Simulator::BlockingSerial {
 public:
  explicit BlockingSerial(Simulator& simulator)
      : s_(simulator),
        p_(simulator.problem_),
        device_free_(p_.d, 0),
        channel_free_(p_.channels, 0),
        arrival_(p_.n, 0) {}

  double run() {
    for (int op = 0; op < p_.n; ++op)
      if (s_.needs_[op] == 0) enter_op(op);
    while (!heap_.empty()) {
      const Item item = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end(), worse);
      heap_.pop_back();
      if (item.transfer)
        append_transfer(s_.transfers_[item.id]);
      else
        append_op(item.id);
    }
    return makespan_;
  }

 private:
  void enter(const Item& item) {
    heap_.push_back(item);
    std::push_heap(heap_.begin(), heap_.end(), worse);
  }
  void enter_op(int op) { enter({s_.decision_.priority[op], false, op, -1, op}); }

  void arrive(int consumer, double time) {
    arrival_[consumer] = std::max(arrival_[consumer], time);
    if (--s_.pending_[consumer] == 0) enter_op(consumer);
  }
  void arrive_on_target(const Transfer& transfer) {
    makespan_ = std::max(makespan_, transfer.end);
    for (const int consumer : p_.consumers_of(transfer.tensor))
      if (s_.decision_.placement[consumer] == transfer.target) arrive(consumer, transfer.end);
  }

  void append_transfer(Transfer& transfer) {
    const size_t pair = static_cast<size_t>(transfer.source) * p_.d + transfer.target;
    double& channel = channel_free_[p_.channel[pair]];
    double &source = device_free_[transfer.source], &target = device_free_[transfer.target];
    transfer.start = std::max({source, target, channel, s_.end_[p_.producer[transfer.tensor]]});
    transfer.end =
        transfer.start + p_.transfer_seconds(transfer.tensor, transfer.source, transfer.target);
    source = target = transfer.end;
    if (p_.contention) channel = transfer.end;
    arrive_on_target(transfer);
  }

  void append_op(int op) {
    const int here = s_.decision_.placement[op];
    s_.start_[op] = std::max(device_free_[here], arrival_[op]);
    s_.end_[op] = device_free_[here] = s_.start_[op] + p_.op_seconds(op, here);
    makespan_ = std::max(makespan_, s_.end_[op]);
    for (const int tensor : p_.outputs_of(op)) {
      request_transfers(tensor, op, here);
      launch_transfers(tensor, op);
    }
  }

  // Hands a tensor to its consumers beside the op, and makes a transfer to each other device, with
  // the highest priority of the consumers there.
  void request_transfers(int tensor, int op, int here) {
    for (const int consumer : p_.consumers_of(tensor)) {
      const int there = s_.decision_.placement[consumer];
      if (there == here || (p_.signal[tensor] && p_.synchronisation == 0)) {
        arrive(consumer, s_.end_[op]);
        continue;
      }
      const float priority = s_.decision_.priority[consumer];
      int& transfer = s_.slot_[there];
      if (transfer < 0) transfer = s_.add_transfer(tensor, there, priority);
      s_.transfers_[transfer].priority = std::max(s_.transfers_[transfer].priority, priority);
    }
  }

  // Signals leave at once; transfers of bytes become items.
  void launch_transfers(int tensor, int op) {
    for (int t = s_.first_transfer_[tensor]; t >= 0; t = s_.transfers_[t].next_of_tensor) {
      auto& transfer = s_.transfers_[t];
      s_.slot_[transfer.target] = -1;
      if (s_.decision_.transfer_priority)
        transfer.priority =
            s_.decision_.transfer_priority[static_cast<size_t>(tensor) * p_.d + transfer.target];
      if (!p_.signal[tensor]) {
        enter({transfer.priority, true, tensor, transfer.target, t});
        continue;
      }
      transfer.start = s_.end_[op];
      transfer.end = s_.end_[op] + p_.synchronisation;
      arrive_on_target(transfer);
    }
  }

  Simulator& s_;
  const Problem& p_;
  std::vector<double> device_free_, channel_free_, arrival_;
  std::vector<Item> heap_;
  double makespan_ = 0;
};

double Simulator::blocking_serial() { return BlockingSerial(*this).run(); }

}  // namespace situate::sim
