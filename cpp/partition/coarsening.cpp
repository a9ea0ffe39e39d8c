#include "partition/coarsening.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

namespace situate::partition {

namespace {
// The least product of two groups' seconds in a weight: edges of groups that take no time are
// heavy.
constexpr double least_product = 1e-30;

// Exact updates of weights an edge, on average. Beyond them an edge is updated only when its weight
// has halved: all edges of a hub lose weight whenever it grows, and exact updates would take time
// quadratic in their number.
constexpr int64_t exact_updates_an_edge = 64;
}  // namespace

// The heaviest edge comes first; of equal ones, that between the groups of the lowest numbers.
bool Coarsening::Edge::operator<(const Edge& other) const {
  return std::tie(weight, other.a, other.b) < std::tie(other.weight, a, b);
}

Coarsening::Coarsening(const WeightedUnits& units)
    : d_(units.d),
      left_(units.units),
      seconds_(units.seconds.begin(), units.seconds.end()),
      bytes_(units.persistent.begin(), units.persistent.end()),
      capacity_(units.capacity),
      allowed_(units.allowed.begin(), units.allowed.end()),
      into_(units.units),
      flow_(units.units) {
  std::iota(into_.begin(), into_.end(), 0);
  const int64_t held = std::accumulate(bytes_.begin(), bytes_.end(), int64_t{0});
  always_fits_ = held <= *std::min_element(capacity_.begin(), capacity_.end());
  for (int unit = 0; unit < units.units; ++unit)
    for (int64_t i = units.start[unit]; i < units.start[unit + 1]; ++i)
      flow_[unit][static_cast<int>(units.neighbour[i])] = static_cast<double>(units.bytes[i]);
}

void Coarsening::reach(int count, double most) {
  double limit = most * std::accumulate(seconds_.begin(), seconds_.end(), 0.0) / count;
  contract_edges(count, limit);
  while (left_ > count) {
    if (has_joinable_edge())
      limit = std::max(limit * most, least_product);
    else if (!add_empty_edges())
      break;
    contract_edges(count, limit);
  }
}

// Contracts edges from a priority queue. Weights fall as groups grow; an edge's weight is updated
// when the edge comes to the front (lazily), and the edge is queued again.
void Coarsening::contract_edges(int count, double limit) {
  std::vector<Edge> heavier;
  for (const int a : groups())
    for (const auto& [b, flow] : flow_[a])
      if (a < b) heavier.push_back(edge(a, b));
  int64_t exact = exact_updates_an_edge * static_cast<int64_t>(heavier.size());
  std::priority_queue<Edge> edges({}, std::move(heavier));
  while (!edges.empty() && left_ > count) {
    const auto [weight, a, b] = edges.top();
    edges.pop();
    if (!flow_[a].contains(b) || seconds_[a] + seconds_[b] > limit) continue;
    const Edge now = edge(a, b);
    if (now.weight < (exact > 0 ? weight : weight / 2)) {
      edges.push(now);
      --exact;
    } else if (share_device(a, b)) {
      heavier.clear();
      contract(a, b, heavier);
      for (const Edge& other : heavier) edges.push(other);
    }
  }
}

// Whether an edge is left whose contraction only the limit of seconds forbids.
bool Coarsening::has_joinable_edge() const {
  for (const int a : groups())
    for (const auto& [b, flow] : flow_[a])
      if (a < b && share_device(a, b)) return true;
  return false;
}

// Adds edges without bytes between groups that share a device: between groups that are next to each
// other in seconds, or, where no such two do, between any two. Returns whether any were added.
bool Coarsening::add_empty_edges() {
  auto ordered = by_devices(groups());
  bool found = false;
  const auto link = [&](int a, int b) {
    if (!share_device(a, b)) return;
    flow_[a][b] = flow_[b][a] = 0;
    found = true;
  };
  for (size_t i = 0; i + 1 < ordered.size(); i += 2) link(ordered[i], ordered[i + 1]);
  if (found) return true;
  const auto few = two_lightest_by_devices();
  for (size_t i = 0; i < few.size() && !found; ++i)
    for (size_t j = i + 1; j < few.size() && !found; ++j) link(few[i], few[j]);
  return found;
}

std::vector<int64_t> Coarsening::labels() const {
  auto into = into_;
  std::vector<int64_t> result;
  for (int group : into) {
    while (into[group] != group) group = into[group] = into[into[group]];
    result.push_back(group);
  }
  return result;
}

Coarsening::Edge Coarsening::edge(int a, int b) const {
  const double flow = flow_[a].at(b), seconds = seconds_[a] * seconds_[b];
  return {flow * flow / std::max(least_product, seconds), std::min(a, b), std::max(a, b)};
}

// Whether some device may run both groups and can hold both.
bool Coarsening::share_device(int a, int b) const {
  for (int device = 0; device < d_; ++device)
    if (may_run(a, device) && may_run(b, device) &&
        (always_fits_ || bytes_[a] + bytes_[b] <= capacity_[device]))
      return true;
  return false;
}

// Contracts two groups into one, and appends its edges that have become heavier to `heavier`.
void Coarsening::contract(int a, int b, std::vector<Edge>& heavier) {
  if (flow_[a].size() < flow_[b].size()) std::swap(a, b);
  into_[b] = a;
  --left_;
  seconds_[a] += seconds_[b];
  bytes_[a] += bytes_[b];
  for (int device = 0; device < d_; ++device)
    if (!may_run(b, device)) allowed_[static_cast<size_t>(a) * d_ + device] = 0;
  const auto moved = std::exchange(flow_[b], {});
  flow_[a].erase(b);
  for (const auto& [other, flow] : moved) {
    if (other == a) continue;
    flow_[other].erase(b);
    flow_[other][a] = flow_[a][other] += flow;
    heavier.push_back(edge(a, other));
  }
}

std::vector<int> Coarsening::groups() const {
  std::vector<int> result;
  for (int group = 0; group < static_cast<int>(into_.size()); ++group)
    if (into_[group] == group) result.push_back(group);
  return result;
}

// Sorts groups by the set of devices that they may use, and within a set by seconds.
std::vector<int> Coarsening::by_devices(const std::vector<int>& groups) const {
  auto result = groups;
  std::stable_sort(result.begin(), result.end(), [this](int a, int b) {
    const int order = compare_devices(a, b);
    return order ? order < 0 : seconds_[a] < seconds_[b];
  });
  return result;
}

// Of every set of groups that may use the same devices, the two that hold the fewest bytes: if no
// two of these fit on one device, no others do.
std::vector<int> Coarsening::two_lightest_by_devices() const {
  auto ordered = groups();
  std::stable_sort(ordered.begin(), ordered.end(),
                   [this](int a, int b) { return bytes_[a] < bytes_[b]; });
  std::vector<std::vector<int>> kinds;
  for (const int group : ordered) {
    const auto like = [&](const auto& kind) { return !compare_devices(kind[0], group); };
    const auto kind = std::find_if(kinds.begin(), kinds.end(), like);
    if (kind == kinds.end())
      kinds.push_back({group});
    else if (kind->size() < 2)
      kind->push_back(group);
  }
  std::vector<int> result;
  for (const auto& kind : kinds) result.insert(result.end(), kind.begin(), kind.end());
  return result;
}

int Coarsening::compare_devices(int a, int b) const {
  for (int device = d_ - 1; device >= 0; --device) {
    const int order = may_run(a, device) - may_run(b, device);
    if (order) return order;
  }
  return 0;
}

}  // namespace situate::partition
