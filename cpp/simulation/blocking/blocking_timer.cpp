#include "simulation/blocking/blocking_timer.h"

#include <algorithm>
#include <array>
#include <limits>

namespace situate::sim {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// Up to so many devices a checkpoint at every position costs less than timing some positions again.
constexpr int few_devices = 4;
constexpr int stride_of_many = 16;

// So that rounding in sums of times refuses no plan that is as good as the limit.
constexpr double slack = 1 - 1e-12;

}  // namespace

bool BlockingTimer::supports(const Problem& p) {
  if (!p.blocking) return false;
  if (!p.contention) return true;
  // The devices that every pair on a channel has, if there are such: of the first pair, then fewer.
  std::vector<std::array<int, 2>> common(p.channels, {-2, -2});
  for (int a = 0; a < p.d; ++a)
    for (int b = 0; b < p.d; ++b) {
      if (a == b) continue;
      auto& shared = common[p.channel[static_cast<size_t>(a) * p.d + b]];
      if (shared[0] == -2) shared = {a, b};
      for (int& device : shared)
        if (device != a && device != b) device = -1;
      if (shared[0] == -1 && shared[1] == -1) return false;
    }
  return true;
}

BlockingTimer::BlockingTimer(const Problem& problem, const OrderedPlacement& plan)
    : problem_(problem),
      plan_(plan),
      tail_(problem.n),
      least_(problem.n),
      width_(2 + pairs_of(problem.d) + problem.d),
      stride_(problem.d <= few_devices ? 1 : stride_of_many),
      state_(width_),
      checkpoints_((problem.n / stride_ + 1) * width_),
      new_checkpoints_(checkpoints_.size()),
      end_(problem.n),
      new_end_(problem.n),
      instant_(instant_tensors(problem)),
      sending_(static_cast<size_t>(problem.m) * problem.d, {problem.n, 0}) {
  const auto& p = problem_;
  for (int op = 0; op < p.n; ++op) {
    const double* row = p.seconds.data() + static_cast<size_t>(op) * p.d;
    least_[op] = *std::min_element(row, row + p.d);
    input_start_.push_back(static_cast<int32_t>(inputs_.size()));
    signal_start_.push_back(static_cast<int32_t>(signals_.size()));
    for (const int tensor : p.inputs_of(op))
      (p.signal[tensor] ? signals_ : inputs_).push_back({tensor, p.producer[tensor]});
  }
  input_start_.push_back(static_cast<int32_t>(inputs_.size()));
  signal_start_.push_back(static_cast<int32_t>(signals_.size()));
  for (int i = p.n - 1; i >= 0; --i) {
    const int op = p.order[i];
    for (const int tensor : p.outputs_of(op))
      for (const int consumer : p.consumers_of(tensor))
        tail_[op] = std::max(tail_[op], tail_[consumer]);
    tail_[op] += least_[op];
  }
  for (const double seconds : least_) checkpoints_[problem.d + 1] += seconds;
}

double BlockingTimer::time(int first, double limit) {
  const auto& p = problem_;
  first_ = std::min(first, p.n - 1) / stride_ * stride_;
  ++timing_;
  new_sent_.clear();
  std::copy_n(checkpoint(checkpoints_, first_), width_, state_.begin());
  double* const free = state_.data();
  double &busy = state_[p.d], &work_left = state_[p.d + 1];
  const double room = limit * p.d;
  const auto &order = plan_.order(), &devices = plan_.device();
  for (int i = first_; i < p.n; ++i) {
    if (i % stride_ == 0) std::copy_n(free, width_, checkpoint(new_checkpoints_, i));
    const int op = order[i], device = devices[op];
    for (int k = input_start_[op]; k < input_start_[op + 1]; ++k)
      if (devices[inputs_[k].producer] != device) receive(inputs_[k], device, i);
    const double start = std::max(free[device], signalled(op, device));
    if (start + tail_[op] > limit) return never;
    const double end = start + p.op_seconds(op, device);
    busy += end - free[device];
    work_left -= least_[op];
    free[device] = new_end_[op] = end;
    if ((busy + work_left) * slack > room) return never;
  }
  const double makespan = *std::max_element(free, free + p.d);
  return makespan > limit ? never : makespan;
}

// Receives a tensor from another device unless it is there.
void BlockingTimer::receive(const Input& input, int device, int position) {
  const int source = plan_.device()[input.producer];
  double& met = state_[problem_.d + 2 + pair_of(source, device)];
  double seconds = 0;
  if (instant_[input.tensor]) {
    if (plan_.position(input.producer) < met) return;
  } else {
    const size_t k = static_cast<size_t>(input.tensor) * problem_.d + device;
    Sending& sending = sending_[k];
    if (sending.at < first_ || sending.timing == timing_) return;
    sending.timing = timing_;
    new_sent_.push_back({position, k});
    seconds = problem_.transfer_seconds(input.tensor, source, device);
  }
  met = position;
  double &here = state_[device], &there = state_[source];
  const double end = std::max(here, there) + seconds;
  state_[problem_.d] += 2 * end - here - there;
  here = there = end;
}

// When the op has its signals from other devices.
double BlockingTimer::signalled(int op, int device) const {
  double latest = 0;
  for (int k = signal_start_[op]; k < signal_start_[op + 1]; ++k) {
    const int producer = signals_[k].producer;
    const double end = plan_.position(producer) < first_ ? end_[producer] : new_end_[producer];
    const bool same = plan_.device()[producer] == device;
    latest = std::max(latest, same ? end : end + problem_.synchronisation);
  }
  return latest;
}

void BlockingTimer::commit() {
  for (; !sent_.empty() && sent_.back().position >= first_; sent_.pop_back())
    sending_[sent_.back().sending].at = problem_.n;
  for (const auto& sent : new_sent_) sending_[sent.sending].at = sent.position;
  sent_.insert(sent_.end(), new_sent_.begin(), new_sent_.end());
  for (int i = first_; i < problem_.n; ++i) end_[plan_.order()[i]] = new_end_[plan_.order()[i]];
  const size_t from = static_cast<size_t>(first_ / stride_) * width_;
  std::copy(new_checkpoints_.begin() + from, new_checkpoints_.end(), checkpoints_.begin() + from);
}

}  // namespace situate::sim
