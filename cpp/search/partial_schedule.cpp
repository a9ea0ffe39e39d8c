#include "search/partial_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace situate::search {

using problem::add_bytes;

PartialSchedule::PartialSchedule(const Problem& problem, double room)
    : p_(problem),
      room_(problem.capacity),
      device_of_unit_(problem.units, -1),
      finish_(problem.n, 0),
      placed_(problem.n, 0),
      free_(problem.d, 0),
      channel_free_(problem.channels, 0),
      place_(problem.n, 0),
      arrival_(static_cast<size_t>(problem.m) * problem.d, std::nan("")),
      used_(problem.d, 0),
      waiting_(problem.m),
      held_(problem.units, 0) {
  for (int tensor = 0; tensor < p_.m; ++tensor)
    waiting_[tensor] = static_cast<int32_t>(p_.consumers_of(tensor).size());
  for (int op = 0; op < p_.n; ++op) held_[p_.unit[op]] += p_.persistent[op];
  if (p_.blocking) {
    instant_ = sim::instant_tensors(p_);
    met_.assign(sim::pairs_of(p_.d), 0);
  }
  for (auto& bytes : room_) bytes = static_cast<int64_t>(static_cast<double>(bytes) * room);
}

bool PartialSchedule::is_deferred(int op) const {
  constexpr double never = std::numeric_limits<double>::infinity();
  if (!p_.inputs_of(op).empty() || !has_consumers(op)) return false;
  const double* row = p_.seconds.data() + static_cast<size_t>(op) * p_.d;
  return std::all_of(row, row + p_.d, [](double s) { return s == 0 || s == never; });
}

bool PartialSchedule::has_consumers(int op) const {
  const auto outputs = p_.outputs_of(op);
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](int t) { return !p_.consumers_of(t).empty(); });
}

double PartialSchedule::inputs_arrive(int op, int device) const {
  double latest = p_.blocking ? free_[device] : 0;
  if (p_.blocking) trial_ = free_;
  for (const int tensor : p_.inputs_of(op)) {
    const int producer = p_.producer[tensor];
    if (!placed_[producer]) continue;  // deferred, and goes where this op goes
    const int source = device_of(producer);
    const double known = arrival(tensor, device);
    latest =
        std::max(latest, source == device                    ? finish_[producer]
                         : known == known                    ? known
                         : p_.blocking && !p_.signal[tensor] ? meet(tensor, device, trial_)
                                                             : send_time(tensor, source, device));
  }
  return latest;
}

// Blocking: whether a tensor was sent with another one, since its own transfer takes no time.
bool PartialSchedule::goes_along(int tensor, int device) const {
  const int producer = p_.producer[tensor];
  return instant_[tensor] && place_[producer] < met_[sim::pair_of(device_of(producer), device)];
}

// Blocking: when a tensor is on the device, to which it is sent; that occupies both devices.
double PartialSchedule::meet(int tensor, int device, std::vector<double>& free) const {
  const int producer = p_.producer[tensor], source = device_of(producer);
  if (goes_along(tensor, device)) return finish_[producer];
  const double begin = std::max(free[source], free[device]);
  return free[source] = free[device] = begin + p_.transfer_seconds(tensor, source, device);
}

double PartialSchedule::inputs_end(int op) const {
  double latest = 0;
  for (const int tensor : p_.inputs_of(op)) {
    const int producer = p_.producer[tensor];
    if (placed_[producer]) latest = std::max(latest, finish_[producer]);
  }
  return latest;
}

int64_t PartialSchedule::shortage(int op, int device) const {
  if (!counts_tensors() && device_of(op) >= 0) return 0;
  int64_t need = needs_anywhere(op);
  for (const int tensor : p_.inputs_of(op)) {
    const int producer = p_.producer[tensor];
    if (counts_tensors() && placed_[producer] && device_of(producer) != device &&
        std::isnan(arrival(tensor, device)))
      need = add_bytes(need, p_.size[tensor]);
  }
  return std::max<int64_t>(0, add_bytes(used_[device], need) - room_[device]);
}

// Bytes that an op needs on any device, without those of its placed inputs.
int64_t PartialSchedule::needs_anywhere(int op) const {
  int64_t need = device_of(op) < 0 ? held_[p_.unit[op]] : 0;
  if (counts_tensors()) need = add_bytes(need, p_.start_bytes[op]);
  for (const int tensor : p_.inputs_of(op)) {
    const int producer = p_.producer[tensor];
    if (!placed_[producer] && device_of(producer) < 0 && p_.unit[producer] != p_.unit[op])
      need = add_bytes(need, held_[p_.unit[producer]]);
  }
  return need;
}

void PartialSchedule::look_at_all(int op, std::span<double> arrive,
                                  std::span<int64_t> lacking) const {
  if (p_.blocking || device_of(op) >= 0) {
    for (int device = 0; device < p_.d; ++device) {
      arrive[device] = inputs_arrive(op, device);
      lacking[device] = shortage(op, device);
    }
    return;
  }
  std::fill(arrive.begin(), arrive.end(), 0.0);
  std::fill(lacking.begin(), lacking.end(), needs_anywhere(op));
  for (const int tensor : p_.inputs_of(op))
    if (placed_[p_.producer[tensor]]) look_at_input(tensor, arrive, lacking);
  for (int device = 0; device < p_.d; ++device)
    lacking[device] =
        std::max<int64_t>(0, add_bytes(used_[device], lacking[device]) - room_[device]);
}

// Adds an input that is made: when it could be on each device, and its bytes where it is not.
void PartialSchedule::look_at_input(int tensor, std::span<double> arrive,
                                    std::span<int64_t> needs) const {
  const int source = device_of(p_.producer[tensor]);
  const int64_t size = counts_tensors() ? p_.size[tensor] : 0;
  const double* const there = arrival_.data() + static_cast<size_t>(tensor) * p_.d;
  for (int device = 0; device < p_.d; ++device) {
    double when = there[device];
    if (device == source) {
      when = finish_[p_.producer[tensor]];
    } else if (std::isnan(when)) {
      when = send_time(tensor, source, device);
      needs[device] = add_bytes(needs[device], size);
    }
    arrive[device] = std::max(arrive[device], when);
  }
}

void PartialSchedule::place(int op, int device) {
  for (const int tensor : p_.inputs_of(op)) {
    const int producer = p_.producer[tensor];
    if (!placed_[producer]) place_source(producer, device);
  }
  double start = 0;
  for (const int tensor : p_.inputs_of(op)) start = std::max(start, receive(tensor, device));
  start = std::max(start, free_[device]);
  enter(op, device, start);
  for (const int tensor : p_.inputs_of(op)) release(tensor);
}

Listed PartialSchedule::listed() && {
  Listed result;
  result.order = std::move(order_);
  result.end = std::move(finish_);
  result.placement.resize(p_.n);
  for (int op = 0; op < p_.n; ++op) result.placement[op] = device_of(op);
  return result;
}

// When a tensor would arrive if it were sent now.
double PartialSchedule::send_time(int tensor, int source, int device) const {
  const double seconds = p_.transfer_seconds(tensor, source, device);
  const double ready = finish_[p_.producer[tensor]];
  if (p_.signal[tensor] || !p_.contention) return ready + seconds;
  const int channel = p_.channel[static_cast<size_t>(source) * p_.d + device];
  return std::max(ready, channel_free_[channel]) + seconds;
}

// When a tensor is on the device, to which it is sent unless it is there.
double PartialSchedule::receive(int tensor, int device) {
  const int producer = p_.producer[tensor];
  const int source = device_of(producer);
  if (source == device) return finish_[producer];
  double& there = arrival(tensor, device);
  if (there == there) return there;
  if (p_.blocking && !p_.signal[tensor]) {
    const bool along = goes_along(tensor, device);
    there = meet(tensor, device, free_);
    if (!along) met_[sim::pair_of(source, device)] = static_cast<int32_t>(order_.size());
    if (counts_tensors()) used_[device] += p_.size[tensor];
    return there;
  }
  there = send_time(tensor, source, device);
  if (!p_.signal[tensor] && p_.contention)
    channel_free_[p_.channel[static_cast<size_t>(source) * p_.d + device]] = there;
  if (counts_tensors()) used_[device] += p_.size[tensor];
  return there;
}

void PartialSchedule::place_source(int op, int wanted) {
  int device = device_of(op);
  if (device < 0) {
    device = wanted;
    for (int other = 0; !p_.may_run(p_.unit[op], device); ++other) device = other;
  }
  enter(op, device, 0);
}

void PartialSchedule::enter(int op, int device, double start) {
  int& fixed = device_of_unit_[p_.unit[op]];
  if (fixed < 0) used_[device] += held_[p_.unit[op]];
  fixed = device;
  placed_[op] = 1;
  finish_[op] = start + p_.op_seconds(op, device);
  free_[device] = std::max(free_[device], finish_[op]);
  place_[op] = static_cast<int32_t>(order_.size());
  order_.push_back(op);
  if (counts_tensors()) used_[device] += p_.start_bytes[op] - p_.workspace[op];
}

// After its last consumer, a tensor and all its copies are freed.
void PartialSchedule::release(int tensor) {
  if (--waiting_[tensor] > 0 || !counts_tensors()) return;
  const int home = device_of(p_.producer[tensor]);
  if (!p_.resident[tensor] && !p_.output[tensor]) used_[home] -= p_.size[tensor];
  for (int device = 0; device < p_.d; ++device) {
    const double there = arrival(tensor, device);
    if (there == there) used_[device] -= p_.size[tensor];
  }
}

}  // namespace situate::search
