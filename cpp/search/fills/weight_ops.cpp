#include "search/fills/weight_ops.h"

#include <algorithm>
#include <limits>

namespace situate::search {

using problem::Problem;

std::vector<uint8_t> without_data(const Problem& p, std::span<const uint8_t> enters) {
  std::vector<uint8_t> found(p.n, 0);
  for (const int op : p.order) {  // producers first
    const auto inputs = p.inputs_of(op);
    found[op] =
        inputs.empty() ? !enters[op] : std::all_of(inputs.begin(), inputs.end(), [&](int tensor) {
          return found[p.producer[tensor]] != 0;
        });
  }
  return found;
}

std::vector<double> first_use(const Problem& p, std::span<const uint8_t> without_data,
                              std::span<const double> place) {
  std::vector<double> found(place.begin(), place.end());
  for (int i = p.n - 1; i >= 0; --i) {  // readers first: theirs may be the place of their readers
    const int op = p.order[i];
    if (!without_data[op]) continue;
    double least = std::numeric_limits<double>::infinity();
    bool read = false;
    for (const int tensor : p.outputs_of(op))
      for (const int reader : p.consumers_of(tensor)) {
        least = std::min(least, found[reader]);
        read = true;
      }
    if (read) found[op] = least;
  }
  return found;
}

}  // namespace situate::search
