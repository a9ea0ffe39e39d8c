#include "search/list_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "problem/sentinels.h"
#include "search/partial_schedule.h"
#include "search/ready_queue.h"

namespace situate::search {

namespace {

// Mean seconds of a tensor's transfer, over all ordered pairs of devices.
double mean_transfer(const Problem& p, int tensor) {
  if (p.d < 2) return 0;
  double sum = 0;
  for (int a = 0; a < p.d; ++a)
    for (int b = 0; b < p.d; ++b)
      if (a != b) sum += p.transfer_seconds(tensor, a, b);
  return sum / (static_cast<double>(p.d) * (p.d - 1));
}

// Mean seconds of an op, over the devices that can run it; 0 if there is none.
double mean_seconds(const Problem& p, int op) {
  double sum = 0;
  int count = 0;
  for (int device = 0; device < p.d; ++device) {
    const double seconds = p.op_seconds(op, device);
    if (!std::isfinite(seconds)) continue;
    sum += seconds;
    ++count;
  }
  return count ? sum / count : 0;
}

// The mean of every tensor's transfers. It is linear in the size, so that the means of latency and
// of 1 / bandwidth give it, except for tensors with seconds of their own and signals.
std::vector<double> mean_transfers(const Problem& p) {
  double latency = 0, per_byte = 0;
  const double pairs = std::max(1.0, static_cast<double>(p.d) * (p.d - 1));
  for (int a = 0; a < p.d; ++a)
    for (int b = 0; b < p.d; ++b) {
      if (a == b) continue;
      latency += p.latency[static_cast<size_t>(a) * p.d + b] / pairs;
      per_byte += 1 / p.bandwidth[static_cast<size_t>(a) * p.d + b] / pairs;
    }
  std::vector<double> mean(p.m);
  for (int tensor = 0; tensor < p.m; ++tensor)
    mean[tensor] =
        p.own_seconds[tensor] == p.own_seconds[tensor] || p.signal[tensor]
            ? mean_transfer(p, tensor)
            : latency + per_byte * static_cast<double>(p.size[tensor]) + p.synchronisation;
  return mean;
}

}  // namespace

std::vector<double> upward_rank(const Problem& p) {
  const auto transfer = mean_transfers(p);
  std::vector<double> rank(p.n, 0);
  for (int i = p.n - 1; i >= 0; --i) {  // consumers first
    const int op = p.order[i];
    for (const int tensor : p.outputs_of(op))
      for (const int consumer : p.consumers_of(tensor))
        rank[op] = std::max(rank[op], transfer[tensor] + rank[consumer]);
    rank[op] += mean_seconds(p, op);
  }
  return rank;
}

namespace {

// Where an op can go and what it costs there: first the bytes that the device lacks, then time.
struct Option {
  int op = -1, device = -1;
  int64_t shortage = std::numeric_limits<int64_t>::max();
  double time = never;  // when the op ends (HEFT) or starts (ETF)
};

}  // namespace

namespace {

// Of all devices, for the op at hand.
struct Outlook {
  std::vector<double> arrive;    // when its inputs could be there
  std::vector<int64_t> lacking;  // bytes
};

// The device where an op ends first, of those that lack the fewest bytes for it.
int earliest_end(const Problem& p, const PartialSchedule& partial, int op, Outlook& outlook) {
  if (partial.device_of(op) >= 0) return partial.device_of(op);
  partial.look_at_all(op, outlook.arrive, outlook.lacking);
  Option best;
  for (int device = 0; device < p.d; ++device) {
    const int64_t shortage = outlook.lacking[device];
    if (!partial.may_run(op, device) || shortage > best.shortage) continue;
    const double start = std::max(partial.device_free(device), outlook.arrive[device]);
    const double end = start + p.op_seconds(op, device);
    if (shortage < best.shortage || end < best.time || best.op < 0)
      best = {op, device, shortage, end};
  }
  return best.device;
}

// Inputs of each op whose producers are not deferred.
std::vector<int32_t> inputs_to_place(const Problem& p, const PartialSchedule& partial) {
  std::vector<int32_t> inputs(p.n, 0);
  for (int op = 0; op < p.n; ++op)
    for (const int tensor : p.inputs_of(op)) inputs[op] += !partial.is_deferred(p.producer[tensor]);
  return inputs;
}

}  // namespace

Listed heft(const Problem& p, double room, Deadline deadline) {
  return heft(p, room, upward_rank(p), deadline);
}

Listed heft(const Problem& p, double room, std::span<const double> rank, Deadline deadline) {
  PartialSchedule partial(p, room);
  const auto later = [&](int a, int b) {
    return rank[a] != rank[b] ? rank[a] < rank[b] : p.place_in_order[a] > p.place_in_order[b];
  };
  std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
  auto unplaced_inputs = inputs_to_place(p, partial);
  for (int op = 0; op < p.n; ++op)
    if (unplaced_inputs[op] == 0 && !partial.is_deferred(op)) ready.push(op);
  Outlook outlook{std::vector<double>(p.d), std::vector<int64_t>(p.d)};
  while (!ready.empty()) {
    deadline.check();
    const int op = ready.top();
    ready.pop();
    partial.place(op, earliest_end(p, partial, op, outlook));
    for (const int tensor : p.outputs_of(op))
      for (const int consumer : p.consumers_of(tensor))
        if (--unplaced_inputs[consumer] == 0) ready.push(consumer);
  }
  return std::move(partial).listed();
}

namespace {

// The queues of all devices, with the ops whose inputs are placed.
class ReadyOps {
 public:
  ReadyOps(const Problem& p, const PartialSchedule& partial, const std::vector<double>& rank)
      : p_(p),
        partial_(partial),
        rank_(rank),
        queues_(p.d),
        unplaced_inputs_(inputs_to_place(p, partial)) {
    for (int op = 0; op < p.n; ++op)
      if (unplaced_inputs_[op] == 0 && !partial.is_deferred(op)) enter(op);
  }

  // The op and device that can start first, among those that lack the fewest bytes.
  Option earliest() {
    Option best;
    for (int device = 0; device < p_.d; ++device) {
      const Option option = first_on(device);
      if (option.op < 0 || (best.op >= 0 && option.shortage > best.shortage)) continue;
      const bool sooner = option.time < best.time ||
                          (option.time == best.time && rank_[option.op] > rank_[best.op]);
      if (best.op < 0 || option.shortage < best.shortage || sooner) best = option;
    }
    return best;
  }
  void placed(int op) {
    for (const int tensor : p_.outputs_of(op))
      for (const int consumer : p_.consumers_of(tensor))
        if (--unplaced_inputs_[consumer] == 0) enter(consumer);
  }

 private:
  void enter(int op) {
    for (int device = 0; device < p_.d; ++device)
      if (partial_.may_run(op, device))
        queues_[device].coming.push({partial_.inputs_arrive(op, device), op});
  }
  Option first_on(int device) {
    auto& queue = queues_[device];
    const double free = partial_.device_free(device);
    queue.advance(
        free, [&](int op) { return partial_.placed(op) || !partial_.may_run(op, device); },
        [&](int op) { return -rank_[op]; });
    if (queue.empty()) return {};
    const int op = queue.top().op;
    // With blocking transfers an input's way depends on all that was placed since the op came.
    const double start =
        p_.blocking ? partial_.inputs_arrive(op, device) : std::max(free, queue.start(free));
    return {op, device, partial_.shortage(op, device), start};
  }

  const Problem& p_;
  const PartialSchedule& partial_;
  const std::vector<double>& rank_;
  std::vector<ReadyQueue> queues_;
  std::vector<int32_t> unplaced_inputs_;  // of each op, deferred producers not counted
};

}  // namespace

Listed etf(const Problem& p, double room, Deadline deadline) {
  const auto rank = upward_rank(p);
  PartialSchedule partial(p, room);
  int left = 0;
  for (int op = 0; op < p.n; ++op) left += !partial.is_deferred(op);
  ReadyOps ready(p, partial, rank);
  for (; left > 0; --left) {
    deadline.check();
    const Option next = ready.earliest();
    partial.place(next.op, next.device);
    ready.placed(next.op);
  }
  return std::move(partial).listed();
}

}  // namespace situate::search
