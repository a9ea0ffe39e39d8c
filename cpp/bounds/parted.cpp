#include "bounds/parted.h"

#include <algorithm>

#include "problem/sentinels.h"

namespace situate::bounds {
namespace {}  // namespace

std::vector<double> parted(const problem::Problem& p, const Paths& paths) {
  std::vector<double> through(p.consumers.size(), never);
  for (int tensor = 0; tensor < p.m; ++tensor) {
    const int a = p.producer[tensor];
    const double* head = &paths.head[static_cast<size_t>(a) * p.d];
    for (int edge = p.consumer_start[tensor]; edge < p.consumer_start[tensor + 1]; ++edge) {
      const int b = p.consumers[edge];
      if (p.unit[a] == p.unit[b]) continue;
      const double* tail = &paths.tail[static_cast<size_t>(b) * p.d];
      for (int source = 0; source < p.d; ++source) {
        const double end = head[source] + p.op_seconds(a, source);
        if (end >= through[edge]) continue;
        for (int target = 0; target < p.d; ++target) {
          if (target == source || tail[target] == never) continue;
          const double rest = p.op_seconds(b, target) + tail[target];
          if (end + rest < through[edge])
            through[edge] =
                std::min(through[edge], end + p.transfer_seconds(tensor, source, target) + rest);
        }
      }
    }
  }
  return through;
}

}  // namespace situate::bounds
