#include "problem.h"

#include <algorithm>
#include <cmath>

namespace situate {

namespace {

// Compressed rows: items[start[r] .. start[r + 1]] holds every i with row_of(i) == r, ascending.
template <typename RowOf>
void group_by(int rows, int count, RowOf row_of, std::vector<int32_t>& start,
              std::vector<int32_t>& items) {
  start.assign(rows + 1, 0);
  items.resize(count);
  for (int i = 0; i < count; ++i) ++start[row_of(i) + 1];
  for (int r = 0; r < rows; ++r) start[r + 1] += start[r];
  std::vector<int32_t> next(start.begin(), start.end() - 1);
  for (int i = 0; i < count; ++i) items[next[row_of(i)]++] = i;
}

}  // namespace

void Problem::derive() {
  units = unit.empty() ? 0 : *std::max_element(unit.begin(), unit.end()) + 1;
  group_by(n, m, [&](int t) { return producer[t]; }, output_start, outputs);
  group_by(units, n, [&](int op) { return unit[op]; }, member_start, members);

  const int edges = static_cast<int>(consumers.size());
  std::vector<int32_t> tensor_of(edges);
  for (int t = 0; t < m; ++t)
    std::fill(tensor_of.begin() + consumer_start[t], tensor_of.begin() + consumer_start[t + 1], t);
  group_by(n, edges, [&](int e) { return consumers[e]; }, input_start, inputs);
  for (auto& edge : inputs) edge = tensor_of[edge];

  signal.resize(m);
  for (int t = 0; t < m; ++t) signal[t] = size[t] == 0 && std::isnan(own_seconds[t]);

  start_bytes = workspace;
  for (int t = 0; t < m; ++t)
    if (!resident[t]) start_bytes[producer[t]] += size[t];

  place_in_order.resize(n);
  for (int i = 0; i < n; ++i) place_in_order[order[i]] = i;
}

}  // namespace situate
