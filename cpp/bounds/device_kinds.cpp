#include "bounds/device_kinds.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace situate::bounds {
namespace {

bool alike(const problem::Problem& p, int a, int b) {
  for (int op = 0; op < p.n; ++op) {
    const bool may = p.may_run(p.unit[op], a);
    if (may != p.may_run(p.unit[op], b)) return false;
    if (may && p.op_seconds(op, a) != p.op_seconds(op, b)) return false;
  }
  return true;
}

}  // namespace

DeviceKinds::DeviceKinds(const problem::Problem& p) {
  for (int device = 0; device < p.d; ++device) {
    const auto same = std::find_if(first.begin(), first.end(),
                                   [&](int other) { return alike(p, other, device); });
    of_device.push_back(static_cast<int>(same - first.begin()));
    if (same == first.end()) {
      first.push_back(device);
      devices.push_back(0);
    }
    ++devices[of_device.back()];
  }
  links_to.resize(first.size());
  std::set<std::tuple<int, int, double, double>> known;
  for (int source = 0; source < p.d; ++source)
    for (int target = 0; target < p.d; ++target) {
      if (source == target) continue;
      const int from = of_device[source], to = of_device[target];
      const size_t pair = static_cast<size_t>(source) * p.d + target;
      if (known.emplace(from, to, p.latency[pair], p.bandwidth[pair]).second)
        links_to[to].push_back({source, target, from});
    }
}

}  // namespace situate::bounds
