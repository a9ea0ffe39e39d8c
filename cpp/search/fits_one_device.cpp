#include "search/fits_one_device.h"

#include <algorithm>
#include <cstdint>

namespace situate::search {

bool fits_one_device(const problem::Problem& p) {
  int64_t bytes = 0;
  for (int op = 0; op < p.n; ++op) bytes += p.persistent[op];
  if (p.memory != problem::Memory::persistent) {
    bytes += p.workspace.empty() ? 0 : *std::max_element(p.workspace.begin(), p.workspace.end());
    for (int tensor = 0; tensor < p.m; ++tensor) bytes += p.size[tensor];
  }
  return bytes <= *std::min_element(p.capacity.begin(), p.capacity.end());
}

}  // namespace situate::search
