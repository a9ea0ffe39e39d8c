#include "search/load_state.h"

#include <algorithm>
#include <cmath>
#include <ranges>

#include "search/overflow.h"

namespace situate::search {

LoadState::LoadState(const Problem& problem, const int32_t* placement)
    : placement_(problem, placement),
      bytes_(problem.persistent.begin(), problem.persistent.end()),
      capacity_(problem.capacity.begin(), problem.capacity.end()),
      touched_in_(problem.m, 0) {
  weigh_units();
  restart(placement);
}

void LoadState::weigh_units() {
  held_by_unit_.assign(problem().units, 0);
  for (int op = 0; op < problem().n; ++op) held_by_unit_[problem().unit[op]] += bytes_[op];
}

void LoadState::weigh(const int64_t* bytes, const int64_t* capacity) {
  bytes_.assign(bytes, bytes + problem().n);
  capacity_.assign(capacity, capacity + problem().d);
  weigh_units();
  best_ = {};
  recount();
  accept(evaluate(0));
}

void LoadState::restart(const int32_t* placement) {
  placement_.assign(placement);
  recount();
  accept(evaluate(0));
}

void LoadState::accept(double cost) {
  cost_ = cost;
  keep_if_best();
}

void LoadState::keep_if_best() {
  const bool better = fits_ == best_.fits ? best_.device.empty() || period_ < best_.period : fits_;
  if (better) best_ = {fits_, period_, placement_.device()};
}

void LoadState::recount() {
  const auto& p = problem();
  const auto& device = placement_.device();
  consumers_on_.assign(static_cast<size_t>(p.m) * p.d, 0);
  load_.assign(static_cast<size_t>(p.d) + p.channels, 0.0);
  held_.assign(p.d, 0);
  for (int op = 0; op < p.n; ++op) {
    load_[device[op]] += p.op_seconds(op, device[op]);
    held_[device[op]] += bytes_[op];
  }
  for (int tensor = 0; tensor < p.m; ++tensor) {
    for (const int consumer : p.consumers_of(tensor))
      ++consumers_on_[static_cast<size_t>(tensor) * p.d + device[consumer]];
    add_tensor(tensor, 1);
  }
}

// Adds (sign 1) or takes away (sign -1) the time for which a tensor's transfers occupy devices and
// channels.
void LoadState::add_tensor(int tensor, double sign) {
  const auto& p = problem();
  if (p.signal[tensor]) return;
  const int source = placement_.device()[p.producer[tensor]];
  const int32_t* on = consumers_on_.data() + static_cast<size_t>(tensor) * p.d;
  double leaving = 0;
  for (int target = 0; target < p.d; ++target) {
    if (target == source || on[target] == 0) continue;
    const double seconds = p.transfer_seconds(tensor, source, target);
    if (p.atomic) {
      leaving = std::max(leaving, seconds);
      if (p.pays[target]) load_[target] += sign * seconds;
      continue;
    }
    if (p.contention)
      load_[p.d + p.channel[static_cast<size_t>(source) * p.d + target]] += sign * seconds;
    if (p.blocking) {
      load_[source] += sign * seconds;
      load_[target] += sign * seconds;
    }
  }
  if (p.atomic && p.pays[source]) load_[source] += sign * leaving;
}

// Takes the loads of all tensors that the unit touches away, moves it, and adds them again.
void LoadState::place(int unit, int device) {
  const auto& p = problem();
  const auto members = p.members_of(unit);
  const int from = placement_.device_of(unit);
  touched_.clear();
  ++now_;
  const auto touch = [&](int tensor) {
    if (touched_in_[tensor] == now_) return;
    touched_in_[tensor] = now_;
    touched_.push_back(tensor);
    add_tensor(tensor, -1);
  };
  for (const int op : members) {
    for (const int tensor : p.inputs_of(op)) touch(tensor);
    for (const int tensor : p.outputs_of(op)) touch(tensor);
  }
  for (const int op : members) {
    load_[from] -= p.op_seconds(op, from);
    load_[device] += p.op_seconds(op, device);
    for (const int tensor : p.inputs_of(op)) {
      --consumers_on_[static_cast<size_t>(tensor) * p.d + from];
      ++consumers_on_[static_cast<size_t>(tensor) * p.d + device];
    }
  }
  placement_.place(unit, device);
  for (const int tensor : touched_) add_tensor(tensor, 1);
  held_[from] -= held_by_unit_[unit];
  held_[device] += held_by_unit_[unit];
}

void LoadState::place_all(int device) {
  placement_.assign(std::vector<int32_t>(problem().n, device).data());
  recount();
}

void LoadState::apply(const Change& change) {
  for (const auto& each : change.units) place(each.unit, each.to);
}

void LoadState::undo(const Change& change) {
  for (const auto& each : std::views::reverse(change.units)) place(each.unit, each.from);
}

// The excess over capacities, each as a share of its device's.
double LoadState::overflow() const {
  double overflow = 0;
  for (int device = 0; device < problem().d; ++device) {
    const int64_t excess = held_[device] - capacity_[device];
    if (excess <= 0) continue;
    const int64_t room = std::max<int64_t>(1, capacity_[device]);
    overflow += static_cast<double>(excess) / static_cast<double>(room);
  }
  return overflow;
}

// The smooth maximum is the 16-norm, so that easing any busy device or channel helps.
double LoadState::evaluate(double) {
  const double most = *std::max_element(load_.begin(), load_.end()), over = overflow();
  period_ = most;
  fits_ = over == 0;
  if (most <= 0) return 0;
  double sum = 0;
  for (const double load : load_) {
    const double x = load / most, x2 = x * x, x4 = x2 * x2, x8 = x4 * x4;
    sum += x8 * x8;
  }
  return most * std::sqrt(std::sqrt(std::sqrt(std::sqrt(sum)))) * overflow_penalty(over);
}

}  // namespace situate::search
