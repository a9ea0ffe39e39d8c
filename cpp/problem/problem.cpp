#include "problem/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "problem/check.h"

namespace situate::problem {

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

constexpr int32_t most_channels = 1 << 24;
constexpr double longest = std::numeric_limits<double>::max();

template <typename T>
bool all_between(const std::vector<T>& values, T low, T high) {
  return std::all_of(values.begin(), values.end(), [&](T x) { return low <= x && x <= high; });
}

}  // namespace

void check_bytes(std::initializer_list<std::span<const int64_t>> sizes) {
  int64_t left = most_bytes;
  for (const auto& some : sizes)
    for (const int64_t bytes : some) {
      check(bytes >= 0 && bytes <= left, "bytes must not be negative or more than 2^62 in all");
      left -= bytes;
    }
}

void check_order(const Problem& p, std::span<const int32_t> order) {
  check(order.size() == static_cast<size_t>(p.n), "an order has one entry an op");
  std::vector<int32_t> position(p.n, -1);
  int32_t next = 0;
  for (const int32_t op : order) {
    check(op >= 0 && op < p.n && position[op] < 0, "an order must be a permutation");
    position[op] = next++;
  }
  for (int t = 0; t < p.m; ++t)
    for (const int consumer : p.consumers_of(t))
      check(position[p.producer[t]] < position[consumer], "an order must be topological");
}

void Problem::check_numbers() const {
  check(n > 0 && d > 0, "there must be an op and a device");
  check(std::all_of(seconds.begin(), seconds.end(), [](double s) { return s >= 0; }) &&
            std::all_of(own_seconds.begin(), own_seconds.end(),
                        [](double s) { return std::isnan(s) || (s >= 0 && s <= longest); }) &&
            all_between(latency, 0.0, longest) && synchronisation >= 0 &&
            synchronisation <= longest,
        "times must not be negative, and those of transfers finite");
  check(std::all_of(bandwidth.begin(), bandwidth.end(), [](double b) { return b > 0; }),
        "bandwidths must be positive");
  check(all_between(capacity, int64_t{0}, most_bytes), "capacities are 0 to 2^62 bytes");
  check_bytes({persistent, workspace, size});
}

void Problem::check_indices() const {
  check(all_between(producer, 0, n - 1) && all_between(consumers, 0, n - 1),
        "a tensor names an op that does not exist");
  check(consumer_start.front() == 0 &&
            consumer_start.back() == static_cast<int64_t>(consumers.size()) &&
            std::is_sorted(consumer_start.begin(), consumer_start.end()),
        "consumers of tensors must follow each other");
  check_order(*this, order);
  check(all_between(unit, 0, n - 1), "a unit's number is below that of ops");
  for (int source = 0; source < d; ++source)
    for (int target = 0; target < d; ++target) {
      const int32_t c = channel[static_cast<size_t>(source) * d + target];
      check(c >= (source == target ? -1 : 0) && c < most_channels,
            "a pair of devices names a channel that does not exist");
    }
}

// Once units are derived.
void Problem::check_units() const {
  check(allowed.size() == static_cast<size_t>(units) * d, "allowed must be units x devices");
  for (int u = 0; u < units; ++u) {
    check(!members_of(u).empty(), "a unit has no op");
    bool somewhere = false;
    for (int device = 0; device < d; ++device) somewhere |= may_run(u, device);
    check(somewhere, "a unit may run on no device");
  }
  for (int op = 0; op < n; ++op)
    for (int device = 0; device < d; ++device)
      check(!may_run(unit[op], device) || op_seconds(op, device) <= longest,
            "an op may run where it takes for ever");
}

void Problem::derive() {
  check_numbers();
  check_indices();
  channels = *std::max_element(channel.begin(), channel.end()) + 1;
  derive_units();
  check_units();
  for (int u = 0; u < units; ++u) {
    int choices = 0;
    for (int device = 0; device < d; ++device) choices += may_run(u, device);
    if (choices > 1) movable.push_back(u);
  }
  group_by(n, m, [&](int t) { return producer[t]; }, output_start, outputs);
  derive_inputs();
  derive_bytes();
  place_in_order.resize(n);
  for (int i = 0; i < n; ++i) place_in_order[order[i]] = i;
}

void Problem::derive_units() {
  units = *std::max_element(unit.begin(), unit.end()) + 1;
  group_by(units, n, [&](int op) { return unit[op]; }, member_start, members);
}

void Problem::derive_inputs() {
  const int edges = static_cast<int>(consumers.size());
  std::vector<int32_t> tensor_of(edges);
  for (int t = 0; t < m; ++t)
    std::fill(tensor_of.begin() + consumer_start[t], tensor_of.begin() + consumer_start[t + 1], t);
  // First the edges of every op, then the tensors that these are of.
  group_by(n, edges, [&](int e) { return consumers[e]; }, input_start, inputs);
  place_in_inputs.resize(edges);
  for (int i = 0; i < edges; ++i) place_in_inputs[inputs[i]] = i;
  for (auto& edge : inputs) edge = tensor_of[edge];
}

void Problem::derive_bytes() {
  signal.resize(m);
  for (int t = 0; t < m; ++t) signal[t] = signals && size[t] == 0 && std::isnan(own_seconds[t]);
  start_bytes = workspace;
  for (int t = 0; t < m; ++t)
    if (!resident[t]) start_bytes[producer[t]] += size[t];
}

}  // namespace situate::problem
