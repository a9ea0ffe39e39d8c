#include "simulation/overlapped.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace situate::sim {

namespace {
constexpr auto later = [](const auto& a, const auto& b) { return a.time > b.time; };
}  // namespace

Overlapped::Overlapped(const Problem& problem, Timeline& timeline, LiveBytes& bytes)
    : problem_(problem),
      timeline_(timeline),
      bytes_(bytes),
      needs_(problem.n),
      by_index_(problem.n),
      running_(problem.d),
      room_(problem.d),
      sequence_(problem.d),
      next_(problem.d),
      channels_(problem.channels),
      slot_(problem.d, -1) {
  std::iota(by_index_.begin(), by_index_.end(), 0);
  for (int op = 0; op < problem.n; ++op)
    needs_[op] = static_cast<int32_t>(problem.inputs_of(op).size());
}

double Overlapped::run(const Decision& decision, bool serial, bool count_bytes) {
  decision_ = decision;
  reset();
  const bool live = count_bytes && problem_.memory == problem::Memory::time;
  if (serial) return live ? simulate<true, true>() : simulate<true, false>();
  return live ? simulate<false, true>() : simulate<false, false>();
}

void Overlapped::reset() {
  pending_ = needs_;
  events_.clear();
  requests_.clear();
  new_.clear();
  touched_.clear();
  std::fill(running_.begin(), running_.end(), -1);
  for (auto& channel : channels_) {
    channel.first = channel.last = -1;
    channel.others.clear();
    channel.busy = channel.touched = false;
  }
  order_.sort({decision_.priority, by_index_.size()}, by_index_);
}

void Overlapped::push(double time, int what) {
  events_.push_back({time, what});
  std::push_heap(events_.begin(), events_.end(), later);
}

// What is due next.
int Overlapped::pop() {
  std::pop_heap(events_.begin(), events_.end(), later);
  const int what = events_.back().what;
  events_.pop_back();
  return what;
}

template <bool Serial, bool Live>
double Overlapped::simulate() {
  if constexpr (Serial)
    split_by_device();
  else
    open_first();
  double now = 0;
  start_idle_devices<Serial, Live>(now);
  while (!events_.empty()) {
    if constexpr (Live) {
      if (events_.front().time > now) bytes_.note_peaks();
    }
    now = events_.front().time;
    while (!events_.empty() && events_.front().time == now) {
      do {
        const int what = pop();
        if (what < problem_.d)
          end_op<Serial, Live>(what);
        else
          end_transfer<Serial, Live>(what - problem_.d);
      } while (!events_.empty() && events_.front().time == now);
      launch_requests<Live>(now);
    }
    start_idle_devices<Serial, Live>(now);
  }
  return now;
}

void Overlapped::open_first() {
  ready_.clear();
  for (auto& room : room_) ready_.emplace_back(problem_.n, room);
  for (int op = 0; op < problem_.n; ++op)
    if (needs_[op] == 0) open(op);
}

// Serial: the priority-topological order of all ops, split by device.
void Overlapped::split_by_device() {
  auto missing = needs_;
  RankQueue<5> queue(problem_.n, room_[0]);
  for (auto& sequence : sequence_) sequence.clear();
  std::fill(next_.begin(), next_.end(), 0);
  for (int op = 0; op < problem_.n; ++op) queue.insert(order_.rank_of(op), missing[op] == 0);
  while (!queue.empty()) {
    const int op = order_.item_at(queue.pop());
    sequence_[decision_.placement[op]].push_back(op);
    for (const int tensor : problem_.outputs_of(op))
      for (const int consumer : problem_.consumers_of(tensor))
        queue.insert(order_.rank_of(consumer), --missing[consumer] == 0);
  }
}

template <bool Serial, bool Live>
void Overlapped::start_idle_devices(double now) {
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
      op = order_.item_at(ready_[device].pop());
    }
    running_[device] = op;
    timeline_.taken.push_back(op);
    timeline_.start[op] = now;
    timeline_.end[op] = now + problem_.op_seconds(op, device);
    if constexpr (Live) bytes_.add(device, problem_.start_bytes[op]);
    push(timeline_.end[op], device);
  }
}

template <bool Serial, bool Live>
void Overlapped::end_op(int device) {
  const int op = running_[device];
  running_[device] = -1;
  if constexpr (Live) bytes_.add(device, -problem_.workspace[op]);
  for (const int tensor : problem_.outputs_of(op)) send<Serial, Live>(tensor, device);
  if constexpr (Live) bytes_.drop_inputs(op, timeline_);
}

// Hands a tensor to the consumers beside it and requests a transfer to each other device.
template <bool Serial, bool Live>
void Overlapped::send(int tensor, int here) {
  const auto& p = problem_;
  const bool free = p.signal[tensor] && p.synchronisation == 0;
  int holders = 0;
  for (const int consumer : p.consumers_of(tensor)) {
    const int there = decision_.placement[consumer];
    if (there == here || free) {
      arrive<Serial>(consumer);
      holders += there == here;
      continue;
    }
    int& transfer = slot_[there];
    if (transfer < 0) {
      transfer = request(tensor, there);
      ++holders;
    }
    ++timeline_.transfers()[transfer].waiting;
    auto& priority = requests_[transfer].priority;
    priority = std::max(priority, decision_.priority[consumer]);
  }
  for (int t = timeline_.first_transfer(tensor); t >= 0;) {
    const auto& transfer = timeline_.transfers()[t];
    slot_[transfer.target] = -1;
    if (decision_.transfer_priority)
      requests_[t].priority =
          decision_.transfer_priority[static_cast<size_t>(tensor) * p.d + transfer.target];
    t = transfer.next_of_tensor;
  }
  if constexpr (Live) {
    bytes_.set_holders(tensor, holders + 1);
    bytes_.drop(tensor);
  }
}

int Overlapped::request(int tensor, int target) {
  const int transfer =
      timeline_.add(tensor, decision_.placement[problem_.producer[tensor]], target);
  requests_.push_back({0, std::numeric_limits<float>::lowest(), -1});
  new_.push_back(transfer);
  return transfer;
}

// First come, first served, and at one instant by priority.
bool Overlapped::goes_first(int a, int b) const {
  const auto &x = requests_[a], &y = requests_[b];
  if (x.at != y.at) return x.at < y.at;
  if (x.priority != y.priority) return x.priority > y.priority;
  const auto &s = timeline_.transfers()[a], &t = timeline_.transfers()[b];
  return s.tensor != t.tensor ? s.tensor < t.tensor : s.target < t.target;
}

void Overlapped::enqueue(int index, double now) {
  const auto& transfer = timeline_.transfers()[index];
  requests_[index].at = now;
  const int c = channel_of(transfer);
  auto& channel = channels_[c];
  if (channel.first < 0) {
    channel.first = channel.last = index;
  } else if (goes_first(channel.last, index)) {
    channel.last = requests_[channel.last].next = index;
  } else {
    channel.others.push_back(index);
    std::push_heap(channel.others.begin(), channel.others.end(), goes_behind());
  }
  touch(c);
}

void Overlapped::touch(int c) {
  if (channels_[c].touched) return;
  channels_[c].touched = true;
  touched_.push_back(c);
}

int Overlapped::take_first(Channel& channel) {
  auto& heap = channel.others;
  const int first = channel.first;
  if (heap.empty() || (first >= 0 && goes_first(first, heap.front()))) {
    channel.first = requests_[first].next;
    return first;
  }
  std::pop_heap(heap.begin(), heap.end(), goes_behind());
  const int other = heap.back();
  heap.pop_back();
  return other;
}

// Queues the requests of this instant and starts the first of every free channel.
template <bool Live>
void Overlapped::launch_requests(double now) {
  if (new_.size() > 1)
    std::sort(new_.begin(), new_.end(), [&](int a, int b) { return goes_first(a, b); });
  for (const int transfer : new_) {
    if (occupies_channel(timeline_.transfers()[transfer]))
      enqueue(transfer, now);
    else
      begin_transfer<Live>(transfer, now);
  }
  new_.clear();
  for (const int c : touched_) {
    auto& channel = channels_[c];
    channel.touched = false;
    if (channel.busy || !channel.waits()) continue;
    channel.busy = true;
    starting_.push_back(take_first(channel));
  }
  touched_.clear();
  if (starting_.size() > 1)
    std::sort(starting_.begin(), starting_.end(), [&](int a, int b) { return goes_first(a, b); });
  for (const int transfer : starting_) begin_transfer<Live>(transfer, now);
  starting_.clear();
}

template <bool Live>
void Overlapped::begin_transfer(int index, double now) {
  const auto& transfer = timeline_.transfers()[index];
  const double end =
      now + problem_.transfer_seconds(transfer.tensor, transfer.source, transfer.target);
  if (!problem_.signal[transfer.tensor]) timeline_.taken.push_back(problem_.n + index);
  timeline_.start[problem_.n + index] = now;
  timeline_.end[problem_.n + index] = end;
  if constexpr (Live) bytes_.add(transfer.target, problem_.size[transfer.tensor]);
  push(end, problem_.d + index);
}

template <bool Serial, bool Live>
void Overlapped::end_transfer(int index) {
  const auto& transfer = timeline_.transfers()[index];
  if (occupies_channel(transfer)) {
    const int c = channel_of(transfer);
    channels_[c].busy = false;
    touch(c);
  }
  if constexpr (Live) bytes_.drop(transfer.tensor);
  for (const int consumer : problem_.consumers_of(transfer.tensor))
    if (decision_.placement[consumer] == transfer.target) arrive<Serial>(consumer);
}

}  // namespace situate::sim
