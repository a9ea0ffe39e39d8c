#include "problem/reversed.h"

#include <algorithm>

namespace situate::problem {

namespace {

template <typename T>
std::vector<T> transposed(const std::vector<T>& of_pairs, int d) {
  std::vector<T> turned(of_pairs.size());
  for (int a = 0; a < d; ++a)
    for (int b = 0; b < d; ++b)
      turned[static_cast<size_t>(a) * d + b] = of_pairs[static_cast<size_t>(b) * d + a];
  return turned;
}

// The tensors, one for each consumer; cut off at what all may have, so that the sum cannot
// overflow.
void turn_tensors(const Problem& from, Problem& to) {
  const int64_t most = most_bytes / std::max<int64_t>(1, from.consumers.size());
  for (int tensor = 0; tensor < from.m; ++tensor)
    for (const int consumer : from.consumers_of(tensor)) {
      to.size.push_back(std::min(from.size[tensor], most));
      to.own_seconds.push_back(from.own_seconds[tensor]);
      to.producer.push_back(consumer);
      to.consumer_start.push_back(to.m++);
      to.consumers.push_back(from.producer[tensor]);
    }
  to.consumer_start.push_back(to.m);
  to.resident.assign(to.m, 0);
  to.output.assign(to.m, 0);
}

}  // namespace

Problem reversed(const Problem& from) {
  Problem to;
  to.n = from.n;
  to.d = from.d;
  to.blocking = from.blocking;
  to.contention = from.contention;
  to.signals = from.signals;
  to.atomic = from.atomic;
  to.memory = Memory::persistent;
  to.synchronisation = from.synchronisation;
  to.seconds = from.seconds;
  turn_tensors(from, to);
  to.persistent.assign(from.n, 0);
  to.workspace.assign(from.n, 0);
  to.capacity.assign(from.d, most_bytes);
  to.pays = from.pays;
  to.latency = transposed(from.latency, from.d);
  to.bandwidth = transposed(from.bandwidth, from.d);
  to.channel = transposed(from.channel, from.d);
  to.order.assign(from.order.rbegin(), from.order.rend());
  to.unit = from.unit;
  to.allowed = from.allowed;
  to.derive();
  return to;
}

}  // namespace situate::problem
