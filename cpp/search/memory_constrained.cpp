#include "search/memory_constrained.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace situate::search {

MemoryConstrained::MemoryConstrained(const Problem& problem, double room,
                                     std::span<const uint8_t> preferred,
                                     std::span<const int32_t> favourite)
    : p_(problem),
      partial_(problem, room),
      preferred_(preferred),
      favourite_(favourite),
      queues_(problem.d),
      lacking_(problem.d),
      unplaced_inputs_(problem.n, 0),
      last_(problem.d, -1),
      ready_(problem.n, 0),
      settled_(problem.units, 0) {
  for (int op = 0; op < p_.n; ++op)
    for (const int tensor : p_.inputs_of(op))
      unplaced_inputs_[op] += !partial_.is_deferred(p_.producer[tensor]);
  for (int op = 0; op < p_.n; ++op)
    if (unplaced_inputs_[op] == 0 && !partial_.is_deferred(op)) enter(op);
}

Listed MemoryConstrained::listed(Deadline deadline) && {
  int left = 0;
  for (int op = 0; op < p_.n; ++op) left += !partial_.is_deferred(op);
  for (; left > 0; --left) {
    deadline.check();
    place(next());
  }
  return std::move(partial_).listed();
}

// A device that is not preferred queues only for what no preferred one may run.
bool MemoryConstrained::takes(int device, int op) const {
  if (!partial_.may_run(op, device)) return false;
  if (preferred_[device]) return true;
  for (int other = 0; other < p_.d; ++other)
    if (preferred_[other] && partial_.may_run(op, other)) return false;
  return true;
}

double MemoryConstrained::start(int op, int device) const {
  return std::max(partial_.device_free(device), partial_.inputs_arrive(op, device));
}

void MemoryConstrained::enter(int op) {
  ready_[op] = 1;
  in_order_.push({static_cast<double>(p_.place_in_order[op]), op});
  double latest = 0;
  for (int device = 0; device < p_.d; ++device) {
    if (!takes(device, op)) continue;
    push(op, device);
    latest = std::max(latest, partial_.inputs_arrive(op, device));
  }
  urgent_.coming.push({latest, op});
}

void MemoryConstrained::push(int op, int device) {
  queues_[device].coming.push({partial_.inputs_arrive(op, device), op});
}

// Memory that was freed may be enough for ops that were put aside.
void MemoryConstrained::readmit(int device) {
  auto& aside = lacking_[device];
  const auto used = static_cast<double>(partial_.used(device));
  while (!aside.empty() && aside.top().key <= -used) {
    const int op = aside.top().op;
    aside.pop();
    if (!partial_.placed(op)) push(op, device);
  }
}

MemoryConstrained::Pair MemoryConstrained::next() {
  Pair best;
  for (int device = 0; device < p_.d; ++device) {
    Pair pair = first_on(device);
    if (pair.op < 0) continue;
    if (const Pair awaited = awaited_on(device, pair.start); awaited.op >= 0) pair = awaited;
    if (best.op < 0 || comes_before(pair, best)) best = pair;
  }
  return best.op < 0 ? least_lacking() : best;
}

bool MemoryConstrained::comes_before(const Pair& a, const Pair& b) const {
  if (a.start != b.start) return a.start < b.start;
  return p_.place_in_order[a.op] < p_.place_in_order[b.op];
}

// The op that can start first on the device, of those that it has memory for.
MemoryConstrained::Pair MemoryConstrained::first_on(int device) {
  readmit(device);
  auto& queue = queues_[device];
  const double free = partial_.device_free(device);
  const auto stale = [&](int op) { return partial_.placed(op) || !takes(device, op); };
  const auto place = [&](int op) { return static_cast<double>(p_.place_in_order[op]); };
  for (;;) {
    queue.advance(free, stale, place);
    if (queue.empty()) return {};
    const int op = queue.top().op;
    const int64_t shortage = partial_.shortage(op, device);
    if (shortage == 0) return {op, device, std::max(free, queue.start(free))};
    queue.pop();
    lacking_[device].push({static_cast<double>(shortage - partial_.used(device)), op});
  }
}

// The favourite child of the device's last op, or what is urgent before it starts: where all that
// the child reads is made by `now`, when the device could start something, and no other device can
// start it sooner.
MemoryConstrained::Pair MemoryConstrained::awaited_on(int device, double now) {
  const int child = last_[device] < 0 ? -1 : favourite_[last_[device]];
  if (child < 0 || !ready_[child] || partial_.placed(child)) return {};
  if (partial_.inputs_end(child) > now) return {};
  if (!takes(device, child) || !fits(child, device)) return {};
  const double own = start(child, device);
  for (int other = 0; other < p_.d; ++other)
    if (takes(other, child) && start(child, other) < own && fits(child, other)) return {};
  const Pair urgent = urgent_on(device, own);
  return urgent.op < 0 ? Pair{child, device, own} : urgent;
}

// The op that first can start on every device, if that is no later than `before` and the device has
// memory for it.
MemoryConstrained::Pair MemoryConstrained::urgent_on(int device, double before) {
  double all_free = 0;
  for (int other = 0; other < p_.d; ++other)
    if (preferred_[other]) all_free = std::max(all_free, partial_.device_free(other));
  urgent_.advance(
      all_free, [&](int op) { return partial_.placed(op); },
      [&](int op) { return static_cast<double>(p_.place_in_order[op]); });
  if (urgent_.empty() || urgent_.start(all_free) > before) return {};
  const int op = urgent_.top().op;
  if (!takes(device, op) || !fits(op, device)) return {};
  return {op, device, std::max(start(op, device), urgent_.start(all_free))};
}

// Where no ready op fits on its devices: the first in the graph's order, on the device that lacks
// the fewest bytes for it, and of equal ones where it can start first.
MemoryConstrained::Pair MemoryConstrained::least_lacking() {
  while (partial_.placed(in_order_.top().op)) in_order_.pop();
  const int op = in_order_.top().op;
  Pair best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int device = 0; device < p_.d; ++device) {
    if (!partial_.may_run(op, device)) continue;
    const int64_t shortage = partial_.shortage(op, device);
    const double begin = start(op, device);
    if (best.op >= 0 && (shortage > least || (shortage == least && begin >= best.start))) continue;
    best = {op, device, begin};
    least = shortage;
  }
  return best;
}

void MemoryConstrained::place(const Pair& pair) {
  const auto [op, device, begin] = pair;
  partial_.place(op, device);
  last_[device] = op;
  follow(p_.unit[op]);
  for (const int tensor : p_.inputs_of(op)) follow(p_.unit[p_.producer[tensor]]);
  for (const int tensor : p_.outputs_of(op))
    for (const int consumer : p_.consumers_of(tensor))
      if (--unplaced_inputs_[consumer] == 0) enter(consumer);
}

// Once a unit has its device, those of its ops that are ready wait there, and need its bytes no
// more.
void MemoryConstrained::follow(int unit) {
  if (std::exchange(settled_[unit], 1)) return;
  for (const int op : p_.members_of(unit)) {
    if (!ready_[op] || partial_.placed(op)) continue;
    for (int device = 0; device < p_.d; ++device)
      if (partial_.may_run(op, device)) push(op, device);
  }
}

}  // namespace situate::search
