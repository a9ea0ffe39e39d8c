#include "simulation/atomic_calls.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace situate::sim {

namespace {

// What each device does in a step, one thing after the other: one that pays receives tensors, runs
// its ops in the graph's order and sends tensors. Signals occupy nothing.
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

}  // namespace

// Topological over calls (one node for every device that pays) and single ops.
Calls run_calls(const Problem& p, const int32_t* placement) {
  Calls calls;
  calls.begin.assign(p.d, 0);
  const auto turn = turns(p, placement);
  for (const auto& seconds : turn)
    calls.load.push_back(std::accumulate(seconds.begin(), seconds.end(), 0.0));
  calls.op_end.assign(p.n, 0);
  std::vector<double> ready(p.n, 0);
  std::vector<int32_t> missing(p.d, 0), needs(p.n, 0), todo;
  const auto same_call = [&](int a, int b) {
    return placement[a] == placement[b] && p.pays[placement[a]];
  };
  for (int tensor = 0; tensor < p.m; ++tensor)
    for (const int consumer : p.consumers_of(tensor))
      if (!same_call(p.producer[tensor], consumer)) {
        ++needs[consumer];
        if (p.pays[placement[consumer]]) ++missing[placement[consumer]];
      }
  for (int op = 0; op < p.n; ++op)
    if (!p.pays[placement[op]] && needs[op] == 0) todo.push_back(op);
  std::vector<std::vector<int32_t>> ops(p.d);
  for (int op = 0; op < p.n; ++op) ops[placement[op]].push_back(op);
  int done = 0;
  const auto finish = [&](int op, double end) {
    ++done;
    calls.op_end[op] = end;
    calls.makespan = std::max(calls.makespan, end);
  };
  const auto settle = [&](int op, auto&& call) -> void {
    for (const int tensor : p.outputs_of(op))
      for (const int consumer : p.consumers_of(tensor)) {
        if (same_call(op, consumer)) continue;
        const int device = placement[consumer];
        const bool waits = p.signal[tensor] && device != placement[op];
        const double there = calls.op_end[op] + (waits ? p.synchronisation : 0.0);
        if (p.pays[device]) {
          calls.begin[device] = std::max(calls.begin[device], there);
          if (--missing[device] == 0) call(device);
        } else {
          ready[consumer] = std::max(ready[consumer], there);
          if (--needs[consumer] == 0) todo.push_back(consumer);
        }
      }
  };
  std::vector<int32_t> due;  // calls that have all their inputs
  const auto enqueue = [&](int device) { due.push_back(device); };
  for (int device = 0; device < p.d; ++device)
    if (p.pays[device] && missing[device] == 0 && !ops[device].empty()) due.push_back(device);
  while (!todo.empty() || !due.empty()) {
    if (!due.empty()) {
      const int device = due.back();
      due.pop_back();
      // Added up one after the other, as a schedule lists them: its last end is this to the bit.
      const double end =
          std::accumulate(turn[device].begin(), turn[device].end(), calls.begin[device]);
      for (const int op : ops[device]) finish(op, end);
      for (const int op : ops[device]) settle(op, enqueue);
      continue;
    }
    const int op = todo.back();
    todo.pop_back();
    finish(op, ready[op] + p.op_seconds(op, placement[op]));
    settle(op, enqueue);
  }
  if (done < p.n) calls.makespan = std::numeric_limits<double>::infinity();
  return calls;
}

}  // namespace situate::sim
