#include "atomic.h"

#include <algorithm>
#include <limits>

namespace situate {

std::vector<double> call_loads(const Problem& p, const int32_t* placement) {
  std::vector<double> load(p.d, 0);
  std::vector<int32_t> seen(p.d, -1);
  for (int op = 0; op < p.n; ++op) load[placement[op]] += p.op_seconds(op, placement[op]);
  for (int tensor = 0; tensor < p.m; ++tensor) {
    const int source = placement[p.producer[tensor]];
    double leaving = 0;
    for (const int consumer : p.consumers_of(tensor)) {
      const int target = placement[consumer];
      if (target == source || seen[target] == tensor) continue;
      seen[target] = tensor;
      const double seconds = p.transfer_seconds(tensor, source, target);
      leaving = std::max(leaving, seconds);
      if (p.pays[target]) load[target] += seconds;
    }
    if (p.pays[source]) load[source] += leaving;
  }
  return load;
}

// Topological over calls (one node for every device that pays) and single ops.
Calls run_calls(const Problem& p, const int32_t* placement) {
  Calls calls;
  calls.begin.assign(p.d, 0);
  calls.load = call_loads(p, placement);
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
        if (p.pays[device]) {
          calls.begin[device] = std::max(calls.begin[device], calls.op_end[op]);
          if (--missing[device] == 0) call(device);
        } else {
          ready[consumer] = std::max(ready[consumer], calls.op_end[op]);
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
      for (const int op : ops[device]) finish(op, calls.begin[device] + calls.load[device]);
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

}  // namespace situate
