// Overlapped transfers: a loop over events that counts memory at every instant as they happen.
// Blocking transfers are in simulator_blocking.cpp, and memory that is counted from a finished
// schedule in simulator_memory.cpp.
#include "simulation/simulator.h"

#include <algorithm>

#include "simulation/priority_key.h"

namespace situate::sim {

using problem::Memory;

namespace {
constexpr auto later = [](const auto& a, const auto& b) { return a.time > b.time; };
}  // namespace

Simulator::Simulator(const Problem& problem) : problem_(problem) {
  const auto& p = problem_;
  needs_.resize(p.n);
  for (int op = 0; op < p.n; ++op) needs_[op] = static_cast<int32_t>(p.inputs_of(op).size());
  start_.resize(p.n);
  end_.resize(p.n);
  running_.resize(p.d);
  ready_.resize(p.d);
  sequence_.resize(p.d);
  next_.resize(p.d);
  first_transfer_.resize(p.m);
  channels_.resize(p.channels);
  slot_.assign(p.d, -1);
  holders_.resize(p.m);
  used_.resize(p.d);
  if (p.blocking) wanted_.resize(static_cast<size_t>(p.d) * p.d);
}

double Simulator::run(const Decision& decision, Decoder decoder, int64_t* peak) {
  decision_ = decision;
  reset();
  take_persistent(peak);
  const bool serial = decoder == Decoder::serial;
  if (!problem_.blocking && problem_.memory == Memory::time)
    return serial ? overlapped<true, true>(peak) : overlapped<false, true>(peak);
  double makespan;
  if (problem_.blocking)
    makespan = serial ? blocking_serial() : blocking_eager();
  else
    makespan = serial ? overlapped<true, false>(peak) : overlapped<false, false>(peak);
  if (problem_.memory == Memory::time) peak_over_time(makespan, peak);
  if (problem_.memory == Memory::step) peak_per_step(peak);
  return makespan;
}

void Simulator::reset() {
  pending_ = needs_;
  events_.clear();
  transfers_.clear();
  requests_.clear();
  touched_.clear();
  std::fill(first_transfer_.begin(), first_transfer_.end(), -1);
  std::fill(running_.begin(), running_.end(), -1);
  for (auto& channel : channels_) {
    channel.first = channel.last = -1;
    channel.others.clear();
    channel.busy = channel.touched = false;
  }
  std::fill(used_.begin(), used_.end(), 0);
  for (auto& heap : ready_) heap.clear();
}

void Simulator::take_persistent(int64_t* peak) {
  for (int op = 0; op < problem_.n; ++op) used_[decision_.placement[op]] += problem_.persistent[op];
  std::copy(used_.begin(), used_.end(), peak);
}

void Simulator::open(int op) {
  auto& heap = ready_[decision_.placement[op]];
  heap.push_back(priority_key(decision_.priority[op], op));
  std::push_heap(heap.begin(), heap.end());
}

int Simulator::take_best(int device) {
  auto& heap = ready_[device];
  const int op = index_of(heap.front());
  std::pop_heap(heap.begin(), heap.end());
  heap.pop_back();
  return op;
}

void Simulator::push(double time, int what) {
  events_.push_back({time, what});
  std::push_heap(events_.begin(), events_.end(), later);
}

// What is due next.
int Simulator::pop() {
  std::pop_heap(events_.begin(), events_.end(), later);
  const int what = events_.back().what;
  events_.pop_back();
  return what;
}

template <bool Serial, bool Live>
double Simulator::overlapped(int64_t* peak) {
  if constexpr (Serial) priority_topological_sequences();
  for (int op = 0; op < problem_.n; ++op)
    if (needs_[op] == 0) open(op);
  double now = 0;
  start_idle_devices<Serial, Live>(now);
  while (!events_.empty()) {
    if constexpr (Live) {
      if (events_.front().time > now)
        for (int device = 0; device < problem_.d; ++device)
          peak[device] = std::max(peak[device], used_[device]);
    }
    now = events_.front().time;
    while (!events_.empty() && events_.front().time == now) {
      do {
        const int what = pop();
        if (what < problem_.d)
          end_op<Live>(what);
        else
          end_transfer<Live>(what - problem_.d);
      } while (!events_.empty() && events_.front().time == now);
      launch_requests<Live>(now);
    }
    start_idle_devices<Serial, Live>(now);
  }
  return now;
}

template <bool Serial, bool Live>
void Simulator::start_idle_devices(double now) {
  for (int device = 0; device < problem_.d; ++device) {
    if (running_[device] >= 0) continue;
    int op;
    if constexpr (Serial) {
      const auto& sequence = sequence_[device];
      if (next_[device] == static_cast<int>(sequence.size()) ||
          pending_[sequence[next_[device]]] > 0)
        continue;
      op = sequence[next_[device]++];
    } else {
      if (ready_[device].empty()) continue;
      op = take_best(device);
    }
    running_[device] = op;
    start_[op] = now;
    end_[op] = now + problem_.op_seconds(op, device);
    if constexpr (Live) used_[device] += problem_.start_bytes[op];
    push(end_[op], device);
  }
}

template <bool Live>
void Simulator::end_op(int device) {
  const int op = running_[device];
  running_[device] = -1;
  if constexpr (Live) used_[device] -= problem_.workspace[op];
  send_outputs<Live>(op);
  if constexpr (Live) free_inputs<Live>(op);
}

// Hands every output to the consumers beside it and requests a transfer to each other device.
template <bool Live>
void Simulator::send_outputs(int op) {
  const auto& p = problem_;
  const int here = decision_.placement[op];
  const bool free_signals = p.synchronisation == 0;
  for (const int tensor : p.outputs_of(op)) {
    const bool signal = p.signal[tensor];
    int holders = 0;
    for (const int consumer : p.consumers_of(tensor)) {
      const int there = decision_.placement[consumer];
      if (there == here || (signal && free_signals)) {
        arrive(consumer);
        holders += there == here;
        continue;
      }
      int& transfer = slot_[there];
      if (transfer < 0) {
        transfer = add_transfer(tensor, there, decision_.priority[consumer]);
        requests_.push_back(transfer);
        ++holders;
      }
      ++transfers_[transfer].waiting;
      transfers_[transfer].priority =
          std::max(transfers_[transfer].priority, decision_.priority[consumer]);
    }
    for (int t = first_transfer_[tensor]; t >= 0; t = transfers_[t].next_of_tensor) {
      slot_[transfers_[t].target] = -1;
      if (decision_.transfer_priority)
        transfers_[t].priority =
            decision_.transfer_priority[static_cast<size_t>(tensor) * p.d + transfers_[t].target];
    }
    if constexpr (Live) {
      holders_[tensor] = holders + 1;
      free_if_done(tensor);
    }
  }
}

int Simulator::add_transfer(int tensor, int target, float priority) {
  const int source = decision_.placement[problem_.producer[tensor]];
  transfers_.push_back({tensor, source, target, 0, first_transfer_[tensor], -1, priority, 0, 0, 0});
  return first_transfer_[tensor] = static_cast<int>(transfers_.size()) - 1;
}

// Drops one holder of a tensor on its producer's device.
void Simulator::free_if_done(int tensor) {
  if (--holders_[tensor] == 0 && !problem_.resident[tensor] && !problem_.output[tensor])
    used_[decision_.placement[problem_.producer[tensor]]] -= problem_.size[tensor];
}

template <bool Live>
void Simulator::free_inputs(int op) {
  const int here = decision_.placement[op];
  for (const int tensor : problem_.inputs_of(op)) {
    if (problem_.size[tensor] == 0) continue;
    if (decision_.placement[problem_.producer[tensor]] == here) {
      free_if_done(tensor);
      continue;
    }
    int transfer = first_transfer_[tensor];
    while (transfers_[transfer].target != here) transfer = transfers_[transfer].next_of_tensor;
    if (--transfers_[transfer].waiting == 0) used_[here] -= problem_.size[tensor];
  }
}

// First come, first served, and at one instant by priority.
bool Simulator::goes_first(int a, int b) const {
  const auto &x = transfers_[a], &y = transfers_[b];
  if (x.requested != y.requested) return x.requested < y.requested;
  if (x.priority != y.priority) return x.priority > y.priority;
  return x.tensor != y.tensor ? x.tensor < y.tensor : x.target < y.target;
}

void Simulator::enqueue(int index, double now) {
  auto& transfer = transfers_[index];
  transfer.requested = now;
  const int c =
      problem_.channel[static_cast<size_t>(transfer.source) * problem_.d + transfer.target];
  auto& channel = channels_[c];
  if (channel.first < 0) {
    channel.first = channel.last = index;
  } else if (goes_first(channel.last, index)) {
    channel.last = transfers_[channel.last].next_in_queue = index;
  } else {
    channel.others.push_back(index);
    std::push_heap(channel.others.begin(), channel.others.end(), goes_behind());
  }
  if (!channel.touched) {
    channel.touched = true;
    touched_.push_back(c);
  }
}

int Simulator::take_first(Channel& channel) {
  auto& heap = channel.others;
  const int first = channel.first;
  if (heap.empty() || (first >= 0 && goes_first(first, heap.front()))) {
    channel.first = transfers_[first].next_in_queue;
    return first;
  }
  std::pop_heap(heap.begin(), heap.end(), goes_behind());
  const int other = heap.back();
  heap.pop_back();
  return other;
}

// Queues the requests of this instant and starts the first of every free channel.
template <bool Live>
void Simulator::launch_requests(double now) {
  const auto& p = problem_;
  if (requests_.size() > 1)
    std::sort(requests_.begin(), requests_.end(), [&](int a, int b) { return goes_first(a, b); });
  for (const int request : requests_) {
    if (p.contention && !p.signal[transfers_[request].tensor])
      enqueue(request, now);
    else
      begin_transfer<Live>(request, now);
  }
  requests_.clear();
  for (const int c : touched_) {
    auto& channel = channels_[c];
    channel.touched = false;
    if (channel.busy || !channel.waits()) continue;
    channel.busy = true;
    begin_transfer<Live>(take_first(channel), now);
  }
  touched_.clear();
}

template <bool Live>
void Simulator::begin_transfer(int index, double now) {
  auto& transfer = transfers_[index];
  transfer.start = now;
  transfer.end = now + problem_.transfer_seconds(transfer.tensor, transfer.source, transfer.target);
  if constexpr (Live) used_[transfer.target] += problem_.size[transfer.tensor];
  push(transfer.end, problem_.d + index);
}

template <bool Live>
void Simulator::end_transfer(int index) {
  const auto& p = problem_;
  const auto& transfer = transfers_[index];
  if (p.contention && !p.signal[transfer.tensor]) {
    const int c = p.channel[static_cast<size_t>(transfer.source) * p.d + transfer.target];
    auto& channel = channels_[c];
    channel.busy = false;
    if (!channel.touched) {
      channel.touched = true;
      touched_.push_back(c);
    }
  }
  if constexpr (Live) free_if_done(transfer.tensor);
  for (const int consumer : p.consumers_of(transfer.tensor))
    if (decision_.placement[consumer] == transfer.target) arrive(consumer);
}

// Serial: the priority-topological order of all ops, split by device.
void Simulator::priority_topological_sequences() {
  auto missing = needs_;
  auto& heap = ready_[0];
  for (auto& sequence : sequence_) sequence.clear();
  std::fill(next_.begin(), next_.end(), 0);
  const auto enter = [&](int op) {
    heap.push_back(priority_key(decision_.priority[op], op));
    std::push_heap(heap.begin(), heap.end());
  };
  for (int op = 0; op < problem_.n; ++op)
    if (missing[op] == 0) enter(op);
  while (!heap.empty()) {
    const int op = take_best(0);
    sequence_[decision_.placement[op]].push_back(op);
    for (const int tensor : problem_.outputs_of(op))
      for (const int consumer : problem_.consumers_of(tensor))
        if (--missing[consumer] == 0) enter(consumer);
  }
}

template void Simulator::send_outputs<false>(int);
template void Simulator::free_inputs<true>(int);

}  // namespace situate::sim
