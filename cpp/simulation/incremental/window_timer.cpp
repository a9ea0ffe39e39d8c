#include "simulation/incremental/window_timer.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "problem/sentinels.h"

namespace situate::sim {

namespace {
// Relative error of ways that are added up in another order.
constexpr double rounding = 1e-9;
}  // namespace

WindowTimer::WindowTimer(const Problem& problem, const OrderedPlacement& plan, int step)
    : problem_(problem),
      plan_(plan),
      seconds_(problem),
      step_(step),
      times_(static_cast<size_t>(problem.d) + problem.channels),
      width_(times_ + 1),
      sends_(plan),
      start_(problem.n),
      way_(problem.n),
      least_way_(problem.n),
      ways_((problem.n / step + 2) * times_),
      arrival_(problem.inputs.size()),
      timed_arrival_(problem.inputs.size()),
      state_(width_),
      checkpoints_((2 * step / stride + 1) * width_),
      new_checkpoints_(checkpoints_.size()) {
  assert(step % stride == 0);
  restart();
}

void WindowTimer::restart() {
  std::vector<double> ways(times_);
  for (int i = problem_.n; i > 0; --i) {
    if (i % step_ == 0) save_ways(i / step_, ways);
    const int op = plan_.order()[i - 1];
    way_[op] = way_behind(op, ways);
  }
  std::fill(checkpoints_.begin(), checkpoints_.end(), 0.0);
  open(0);
}

void WindowTimer::save_ways(int row, const std::vector<double>& ways) {
  std::copy(ways.begin(), ways.end(), ways_.begin() + row * times_);
}

// The way from the start of the op, given those from the next op of each device and from the next
// transfer of each channel behind it, which it brings up to date.
double WindowTimer::way_behind(int op, std::vector<double>& ways) {
  const int device = plan_.device()[op];
  const auto sends = sends_.of(op);
  double longest = ways[device];
  for (auto send = sends.rbegin(); send != sends.rend(); ++send) {
    double behind = 0;
    for (int input = send->input; input >= 0; input = sends_.next_there(input))
      behind = std::max(behind, way_[sends_.reader(input)]);
    const double seconds = problem_.transfer_seconds(send->tensor, device, send->target);
    if (queues(send->tensor)) {
      double& channel = ways[place_of_channel(device, send->target)];
      behind = std::max(behind, channel);
      channel = seconds + behind;
    }
    longest = std::max(longest, seconds + behind);
  }
  return ways[device] = seconds_.of(op, device) + longest;
}

bool WindowTimer::open_next() {
  if (last_ == problem_.n) return false;
  time({first_, last_}, never);  // so that `start_` is the committed plan's
  const double* state = checkpoint(checkpoints_, first_ + step_);
  std::copy_n(state, times_, checkpoints_.begin());
  open(first_ + step_);
  return true;
}

// The state at the first position is that of the first checkpoint. Ways through earlier windows
// alone do not count: the ways behind them may be shorter by now.
void WindowTimer::open(int first) {
  first_ = first;
  last_ = std::min(problem_.n, first + 2 * step_);
  for (int i = last_ - 1; i >= first_; --i) {
    const int op = plan_.order()[i];
    double least = never;
    for (int device = 0; device < problem_.d; ++device)
      least = std::min(least, seconds_.of(op, device));
    double behind = 0;
    for (const int tensor : problem_.outputs_of(op))
      for (const int consumer : problem_.consumers_of(tensor))
        behind = std::max(
            behind, contains(plan_.position(consumer)) ? least_way_[consumer] : way_[consumer]);
    least_way_[op] = least + behind;
  }
  time({first_, last_}, never);
  commit();
}

double WindowTimer::time(Effect effect, double limit) {
  begin_ = first_ + (std::max(effect.first, first_) - first_) / stride * stride;
  last_arrival_ = effect.last;
  arrived_.clear();
  std::copy_n(checkpoint(checkpoints_, begin_), width_, state_.begin());
  double& through = state_[times_];
  for (int i = begin_; i < last_; ++i) {
    if ((i - first_) % stride == 0) {
      if (i > last_arrival_ && as_committed(i)) {
        end_ = i;
        through_ = committed_through_;
        return through_ > limit ? never : through_;
      }
      std::copy_n(state_.begin(), width_, checkpoint(new_checkpoints_, i));
    }
    const int op = plan_.order()[i], device = plan_.device()[op];
    const double start = start_of(op, device);
    if (start + least_way_[op] > limit) return never;
    start_[op] = start;
    const double finish = start + seconds_.of(op, device);
    state_[device] = finish;
    through = std::max(through, finish);
    if (!send_outputs(op, device, finish, limit)) return never;
  }
  end_ = last_;
  through_ = through;
  const auto ways = ways_.begin() + row_behind_window() * times_;
  for (size_t k = 0; k < times_; ++k) through_ = std::max(through_, state_[k] + ways[k]);
  return through_ > limit ? never : through_;
}

size_t WindowTimer::row_behind_window() const {
  return last_ == problem_.n ? ways_.size() / times_ - 1 : last_ / step_;
}

std::vector<int32_t> WindowTimer::held_up() {
  const double longest = time({first_, last_}, never) * (1 - rounding);
  const auto row = ways_.begin() + row_behind_window() * times_;
  std::vector<double> ways(row, row + times_);
  for (int i = last_ - 1; i >= first_; --i) {
    const int op = plan_.order()[i];
    way_[op] = way_behind(op, ways);
  }
  std::vector<int32_t> ops, latest(problem_.d, -1);  // op of each device
  for (int i = first_; i < last_; ++i) {
    const int op = plan_.order()[i], previous = std::exchange(latest[plan_.device()[op]], op);
    const int before = start_[op] + way_[op] < longest ? -1 : waits_for(op, previous);
    if (before >= 0) ops.insert(ops.end(), {op, before});
  }
  return ops;
}

// The op of the window that an op waits for, -1 for none and for an op of its device that it reads.
int WindowTimer::waits_for(int op, int previous) const {
  const auto& p = problem_;
  const int device = plan_.device()[op];
  if (previous >= 0 && start_[previous] + seconds_.of(previous, device) == start_[op])
    return reads(op, previous) ? -1 : previous;
  for (int input = p.input_start[op]; input < p.input_start[op + 1]; ++input) {
    const int producer = p.producer[p.inputs[input]];
    if (plan_.device()[producer] != device && contains(plan_.position(producer)) &&
        timed_arrival_[input] == start_[op])
      return producer;
  }
  return -1;
}

bool WindowTimer::reads(int op, int producer) const {
  const auto inputs = problem_.inputs_of(op);
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](int tensor) { return problem_.producer[tensor] == producer; });
}

bool WindowTimer::as_committed(int position) const {
  const double* before = checkpoints_.data() + (position - first_) / stride * width_;
  return std::equal(before, before + width_, state_.begin());
}

double WindowTimer::start_of(int op, int device) const {
  const auto& p = problem_;
  double start = state_[device];
  for (int input = p.input_start[op]; input < p.input_start[op + 1]; ++input) {
    const int producer = p.producer[p.inputs[input]];
    if (plan_.device()[producer] == device) continue;
    const bool old = plan_.position(producer) < begin_;
    start = std::max(start, (old ? arrival_ : timed_arrival_)[input]);
  }
  return start;
}

// False as soon as a way must exceed `limit`.
bool WindowTimer::send_outputs(int op, int device, double now, double limit) {
  double& through = state_[times_];
  for (const auto& send : sends_.of(op)) {
    double begin = now;
    const double seconds = problem_.transfer_seconds(send.tensor, device, send.target);
    if (queues(send.tensor)) {
      double& free = state_[place_of_channel(device, send.target)];
      begin = std::max(begin, free);
      free = begin + seconds;
    }
    const double arrival = begin + seconds;
    for (int input = send.input; input >= 0; input = sends_.next_there(input)) {
      const int reader = sends_.reader(input), position = plan_.position(reader);
      timed_arrival_[input] = arrival;
      arrived_.push_back(input);
      if (position >= last_)
        through = std::max(through, arrival + way_[reader]);
      else if (arrival != arrival_[input])
        last_arrival_ = std::max(last_arrival_, position);
    }
    if (through > limit) return false;
  }
  return true;
}

double WindowTimer::new_arrival(int tensor, int device) const {
  const int producer = problem_.producer[tensor], source = plan_.device()[producer];
  const double now = start_[producer] + seconds_.of(producer, source);
  const double free = queues(tensor) ? checkpoints_[place_of_channel(source, device)] : 0;
  return std::max(now, free) + problem_.transfer_seconds(tensor, source, device);
}

void WindowTimer::commit() {
  for (const int input : arrived_) arrival_[input] = timed_arrival_[input];
  const auto from = checkpoint(checkpoints_, begin_) - checkpoints_.data();
  const auto to = checkpoint(checkpoints_, end_ + stride - 1) - checkpoints_.data();
  std::copy(new_checkpoints_.begin() + from, new_checkpoints_.begin() + to,
            checkpoints_.begin() + from);
  committed_through_ = through_;
}

}  // namespace situate::sim
