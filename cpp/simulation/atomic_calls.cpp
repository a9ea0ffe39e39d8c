#include "simulation/atomic_calls.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace situate::sim {

namespace {

// Seconds of all that each device does in a step, one after the other: a device that pays receives
// tensors, runs its ops in the graph's order and sends tensors. Signals occupy nothing.
std::vector<std::vector<double>> turns(const Problem& p, const int32_t* placement) {
  std::vector<std::vector<double>> turn(p.d);
  std::vector<int32_t> seen(p.d, -1);
  std::vector<double> leaving(p.m, -1);
  for (int tensor = 0; tensor < p.m; ++tensor) {
    if (p.signal[tensor]) continue;
    const int source = placement[p.producer[tensor]];
    for (const int consumer : p.consumers_of(tensor)) {
      const int target = placement[consumer];
      if (target == source || seen[target] == tensor) continue;
      seen[target] = tensor;
      const double seconds = p.transfer_seconds(tensor, source, target);
      leaving[tensor] = std::max(leaving[tensor], seconds);
      if (p.pays[target]) turn[target].push_back(seconds);
    }
  }
  for (const int op : p.order) turn[placement[op]].push_back(p.op_seconds(op, placement[op]));
  for (int tensor = 0; tensor < p.m; ++tensor) {
    const int source = placement[p.producer[tensor]];
    if (leaving[tensor] >= 0 && p.pays[source]) turn[source].push_back(leaving[tensor]);
  }
  return turn;
}

// Times calls and single ops in topological order. The nodes are the calls of devices that pay, and
// the ops of devices that do not.
class Timing {
 public:
  Timing(const Problem& p, const int32_t* placement)
      : p_(p),
        placement_(placement),
        turn_(turns(p, placement)),
        ops_(p.d),
        inputs_of_call_(p.d, 0),
        inputs_of_op_(p.n, 0),
        ready_(p.n, 0) {
    calls_.begin.assign(p.d, 0);
    calls_.op_end.assign(p.n, 0);
    for (const auto& seconds : turn_)
      calls_.load.push_back(std::accumulate(seconds.begin(), seconds.end(), 0.0));
    for (int op = 0; op < p.n; ++op) ops_[placement[op]].push_back(op);
    count_inputs();
  }

  Calls run() && {
    for (int op = 0; op < p_.n; ++op)
      if (!pays(op) && inputs_of_op_[op] == 0) ready_ops_.push_back(op);
    for (int device = 0; device < p_.d; ++device)
      if (p_.pays[device] && inputs_of_call_[device] == 0 && !ops_[device].empty())
        ready_calls_.push_back(device);
    while (!ready_ops_.empty() || !ready_calls_.empty())
      if (!ready_calls_.empty())
        run_call(taken_from(ready_calls_));
      else
        run_op(taken_from(ready_ops_));
    if (done_ < p_.n) calls_.makespan = std::numeric_limits<double>::infinity();
    return std::move(calls_);
  }

 private:
  bool pays(int op) const { return p_.pays[placement_[op]]; }
  bool same_call(int a, int b) const { return placement_[a] == placement_[b] && pays(a); }

  static int taken_from(std::vector<int32_t>& nodes) {
    const int last = nodes.back();
    nodes.pop_back();
    return last;
  }

  void count_inputs() {
    for (int tensor = 0; tensor < p_.m; ++tensor)
      for (const int consumer : p_.consumers_of(tensor))
        if (!same_call(p_.producer[tensor], consumer)) {
          ++inputs_of_op_[consumer];
          if (pays(consumer)) ++inputs_of_call_[placement_[consumer]];
        }
  }

  void run_call(int device) {
    // Added up one after the other, as a schedule lists them: its last end is this to the bit.
    const auto& turn = turn_[device];
    const double end = std::accumulate(turn.begin(), turn.end(), calls_.begin[device]);
    for (const int op : ops_[device]) finish(op, end);
    for (const int op : ops_[device]) deliver(op);
  }

  void run_op(int op) {
    finish(op, ready_[op] + p_.op_seconds(op, placement_[op]));
    deliver(op);
  }

  void finish(int op, double end) {
    ++done_;
    calls_.op_end[op] = end;
    calls_.makespan = std::max(calls_.makespan, end);
  }

  // Hands the op's results to the nodes that wait for them. Of the transfers only signals take
  // time here: those of tensors are part of the devices' turns.
  void deliver(int op) {
    for (const int tensor : p_.outputs_of(op))
      for (const int consumer : p_.consumers_of(tensor)) {
        if (same_call(op, consumer)) continue;
        const int device = placement_[consumer];
        const bool waits = p_.signal[tensor] && device != placement_[op];
        const double there = calls_.op_end[op] + (waits ? p_.synchronisation : 0.0);
        if (p_.pays[device]) {
          calls_.begin[device] = std::max(calls_.begin[device], there);
          if (--inputs_of_call_[device] == 0) ready_calls_.push_back(device);
        } else {
          ready_[consumer] = std::max(ready_[consumer], there);
          if (--inputs_of_op_[consumer] == 0) ready_ops_.push_back(consumer);
        }
      }
  }

  const Problem& p_;
  const int32_t* placement_;
  const std::vector<std::vector<double>> turn_;
  std::vector<std::vector<int32_t>> ops_;               // of each device
  std::vector<int32_t> inputs_of_call_, inputs_of_op_;  // that are not there yet
  std::vector<double> ready_;                           // of each op: when its inputs are there
  std::vector<int32_t> ready_ops_, ready_calls_;
  int done_ = 0;
  Calls calls_;
};

}  // namespace

Calls run_calls(const Problem& p, const int32_t* placement) { return Timing(p, placement).run(); }

}  // namespace situate::sim
