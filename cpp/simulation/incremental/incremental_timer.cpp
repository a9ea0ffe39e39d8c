#include "simulation/incremental/incremental_timer.h"

#include <algorithm>
#include <span>

#include "problem/sentinels.h"

namespace situate::sim {

namespace {

// Consumers of a tensor that are searched through for each of them, which takes quadratic time. A
// tensor with more is a hub, for which first and last use are counted once per evaluation.
constexpr size_t few = 16;

std::span<const int32_t> first_few(std::span<const int32_t> consumers) {
  return consumers.first(std::min(consumers.size(), few));
}
}  // namespace

IncrementalTimer::IncrementalTimer(const Problem& problem, const OrderedPlacement& plan,
                                   bool count_bytes)
    : problem_(problem),
      plan_(plan),
      seconds_(problem),
      tail_(problem.n),
      least_(problem.n),
      count_bytes_(count_bytes),
      held_(problem.d),
      room_(problem.capacity.begin(), problem.capacity.end()),
      committed_peak_(problem.d),
      sends_(plan) {
  const auto& p = problem_;
  for (int op = 0; op < p.n; ++op) {
    const double* row = p.seconds.data() + static_cast<size_t>(op) * p.d;
    least_[op] = *std::min_element(row, row + p.d);
  }
  for (int i = p.n - 1; i >= 0; --i) {
    const int op = p.order[i];
    for (const int tensor : p.outputs_of(op))
      for (const int consumer : p.consumers_of(tensor))
        tail_[op] = std::max(tail_[op], tail_[consumer]);
    tail_[op] += least_[op];
  }
  for (int op = 0; op < p.n; ++op)
    if (p.persistent[op] > 0) holding_.push_back(op);
  int hubs = 0;
  for (int tensor = 0; tensor < p.m; ++tensor)
    hub_.push_back(p.consumers_of(tensor).size() > few ? hubs++ : -1);
  uses_.resize(static_cast<size_t>(hubs) * p.d);
  known_in_.assign(hubs, 0);
  times_ = static_cast<size_t>(p.d) + p.channels;
  width_ = times_ + 2 + (count_bytes ? 2 * p.d : 0);
  stride_ = std::max(16, static_cast<int>(width_));
  state_.resize(width_);
  if (count_bytes) {
    live_ = state_.data() + times_ + 2;
    peak_ = live_ + p.d;
  }
  checkpoints_.resize((p.n / stride_ + 1) * width_);
  new_checkpoints_.resize(checkpoints_.size());
  committed_ = timed_ = {std::vector<double>(p.n), std::vector<double>(p.inputs.size())};
  senders_.resize(p.channels);
  for (int a = 0; a < p.d; ++a)
    for (int b = 0; b < p.d; ++b)
      if (a != b) senders_[p.channel[static_cast<size_t>(a) * p.d + b]].push_back(a);
}

void IncrementalTimer::restore(int checkpoint) {
  if (checkpoint > 0) {
    std::copy_n(checkpoints_.begin() + checkpoint * width_, width_, state_.begin());
    return;
  }
  std::fill(state_.begin(), state_.end(), 0.0);
  for (const double seconds : least_) state_[times_ + 1] += seconds;
}

void IncrementalTimer::save(int checkpoint) {
  std::copy_n(state_.begin(), width_, new_checkpoints_.begin() + checkpoint * width_);
}

// Times and memory of all later ops depend on these alone; work left may differ by rounding.
bool IncrementalTimer::as_committed(int position) const {
  const double* before = checkpoints_.data() + position / stride_ * width_;
  const double* behind_work = before + times_ + 2;
  return before[times_] == state_[times_] &&
         std::equal(before, before + problem_.d, state_.begin()) &&
         channels_as(before + problem_.d) &&
         std::equal(behind_work, before + width_, state_.begin() + (behind_work - before)) &&
         (!count_bytes_ || held_ == committed_held_);
}

// A channel that is free before any of its senders is delays nothing, whenever it became free.
bool IncrementalTimer::channels_as(const double* before) const {
  for (int channel = 0; channel < problem_.channels; ++channel) {
    const double now = state_[problem_.d + channel];
    if (now == before[channel]) continue;
    double least = never;
    for (const int sender : senders_[channel]) least = std::min(least, state_[sender]);
    if (std::max(now, before[channel]) > least) return false;
  }
  return true;
}

double IncrementalTimer::time(Effect effect, double limit, bool within_memory) {
  const auto& p = problem_;
  first_ = effect.first / stride_ * stride_;
  last_arrival_ = effect.last;
  ++evaluation_;
  restore(first_ / stride_);
  arrived_.clear();
  if (count_bytes_) hold_persistent();
  const auto& order = plan_.order();
  const auto& devices = plan_.device();
  double& makespan = state_[times_];
  double& work_left = state_[times_ + 1];
  const double room = limit * p.d;
  for (int i = first_; i < p.n; ++i) {
    if (i % stride_ == 0) {
      if (i > last_arrival_ && as_committed(i)) {
        end_ = i;
        makespan = committed_makespan_;
        return makespan > limit ? never : makespan;
      }
      save(i / stride_);
      double busy = work_left;
      for (int device = 0; device < p.d; ++device) busy += state_[device];
      if (busy * (1 - 1e-12) > room) return never;
    }
    const int op = order[i], device = devices[op];
    if (p.blocking) receive_inputs(op, device);
    const double start = start_of(op, device);
    if (start + tail_[op] > limit) return never;
    timed_.start[op] = start;
    const double finish = start + seconds_.of(op, device);
    state_[device] = finish;
    work_left -= least_[op];
    makespan = std::max(makespan, finish);
    send_outputs(op, device, finish);
    if (count_bytes_ && !count(op, device, within_memory)) return never;
  }
  end_ = p.n;
  return makespan > limit ? never : makespan;
}

// Blocking transfers: a tensor is sent just before its first consumer on the device, and occupies
// both devices.
void IncrementalTimer::receive_inputs(int op, int device) {
  const auto& p = problem_;
  for (const int tensor : p.inputs_of(op)) {
    const int source = plan_.device()[p.producer[tensor]];
    if (source == device || p.signal[tensor] || !first_use(tensor, op, device)) continue;
    double& channel = state_[p.d + p.channel[static_cast<size_t>(source) * p.d + device]];
    const double begin = std::max({state_[source], state_[device], channel});
    state_[source] = state_[device] = begin + p.transfer_seconds(tensor, source, device);
    if (count_bytes_) live_[device] += static_cast<double>(p.size[tensor]);
    if (p.contention) channel = state_[device];
  }
}

bool IncrementalTimer::first_use(int tensor, int op, int device) {
  const int here = plan_.position(op);
  for (const int consumer : first_few(problem_.consumers_of(tensor)))
    if (plan_.device()[consumer] == device && plan_.position(consumer) < here) return false;
  return hub_[tensor] < 0 || uses_of(tensor)[device].first >= here;
}

// First and last use of a hub on every device (d), counted once per evaluation.
const IncrementalTimer::Uses* IncrementalTimer::uses_of(int tensor) {
  const int hub = hub_[tensor];
  Uses* uses = uses_.data() + static_cast<size_t>(hub) * problem_.d;
  if (known_in_[hub] == evaluation_) return uses;
  known_in_[hub] = evaluation_;
  std::fill_n(uses, problem_.d, Uses{problem_.n, -1});
  for (const int consumer : problem_.consumers_of(tensor)) {
    Uses& there = uses[plan_.device()[consumer]];
    there.first = std::min(there.first, plan_.position(consumer));
    there.last = std::max(there.last, plan_.position(consumer));
  }
  return uses;
}

double IncrementalTimer::start_of(int op, int device) const {
  const auto& p = problem_;
  double start = state_[device];
  for (int input = p.input_start[op]; input < p.input_start[op + 1]; ++input) {
    const int tensor = p.inputs[input], producer = p.producer[tensor];
    if (plan_.device()[producer] == device || (p.blocking && !p.signal[tensor])) continue;
    const bool old = plan_.position(producer) < first_;
    start = std::max(start, (old ? committed_ : timed_).arrival[input]);
  }
  return start;
}

void IncrementalTimer::send_outputs(int op, int device, double now) {
  const auto& p = problem_;
  for (const auto& send : sends_.of(op)) {
    double begin = now;
    const double seconds = p.transfer_seconds(send.tensor, device, send.target);
    if (p.contention && !p.signal[send.tensor]) {
      double& free = state_[p.d + p.channel[static_cast<size_t>(device) * p.d + send.target]];
      begin = std::max(begin, free);
      free = begin + seconds;
    }
    if (count_bytes_) live_[send.target] += static_cast<double>(p.size[send.tensor]);
    for (int input = send.input; input >= 0; input = sends_.next_there(input))
      arrive(input, begin + seconds);
  }
}

void IncrementalTimer::arrive(int input, double time) {
  timed_.arrival[input] = time;
  arrived_.push_back(input);
  if (time != committed_.arrival[input])
    last_arrival_ = std::max(last_arrival_, plan_.position(sends_.reader(input)));
}

void IncrementalTimer::hold_persistent() {
  std::fill(held_.begin(), held_.end(), 0.0);
  for (const int op : holding_)
    held_[plan_.device()[op]] += static_cast<double>(problem_.persistent[op]);
}

// Adds the bytes that the op takes, and frees tensors that no later op of the order needs.
bool IncrementalTimer::count(int op, int device, bool within_memory) {
  const auto& p = problem_;
  live_[device] += static_cast<double>(p.start_bytes[op]);
  const double used = held_[device] + live_[device];
  if (within_memory && used > room_[device]) return false;
  peak_[device] = std::max(peak_[device], used);
  live_[device] -= static_cast<double>(p.workspace[op]);
  for (const int tensor : p.outputs_of(op))
    if (!p.resident[tensor] && !p.output[tensor] && last_use(tensor, op, device))
      live_[device] -= static_cast<double>(p.size[tensor]);
  for (const int tensor : p.inputs_of(op)) {
    const bool here = plan_.device()[p.producer[tensor]] == device;
    if (p.size[tensor] == 0 || (here && (p.resident[tensor] || p.output[tensor]))) continue;
    if (last_use(tensor, op, device)) live_[device] -= static_cast<double>(p.size[tensor]);
  }
  return true;
}

bool IncrementalTimer::last_use(int tensor, int op, int device) {
  const int here = plan_.position(op);
  for (const int consumer : first_few(problem_.consumers_of(tensor)))
    if (plan_.device()[consumer] == device && plan_.position(consumer) > here) return false;
  return hub_[tensor] < 0 || uses_of(tensor)[device].last <= here;
}

void IncrementalTimer::calibrate(const std::vector<int64_t>& peak) {
  for (int device = 0; device < problem_.d; ++device) {
    const double excess = committed_peak_[device] - static_cast<double>(peak[device]);
    room_[device] = static_cast<double>(problem_.capacity[device]) + std::max(0.0, excess);
  }
}

void IncrementalTimer::commit() {
  for (const int input : arrived_) committed_.arrival[input] = timed_.arrival[input];
  for (int i = first_; i < end_; ++i) {
    const int op = plan_.order()[i];
    committed_.start[op] = timed_.start[op];
  }
  const auto from = static_cast<int64_t>(first_ / stride_ * width_);
  const auto to = static_cast<int64_t>((end_ + stride_ - 1) / stride_ * width_);
  std::copy(new_checkpoints_.begin() + from, new_checkpoints_.begin() + to,
            checkpoints_.begin() + from);
  committed_makespan_ = state_[times_];
  committed_held_ = held_;
  if (count_bytes_ && end_ == problem_.n) std::copy_n(peak_, problem_.d, committed_peak_.begin());
}

}  // namespace situate::sim
