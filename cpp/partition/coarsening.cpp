#include "partition/coarsening.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

namespace situate::partition {

namespace {
// What takes no time is heavy: the least that counts as a product of two groups' seconds.
constexpr double least_product = 1e-30;

// Times that an edge in the mean is brought up to date to the last bit; from then on, only when its
// weight has halved. A hub's edges all fall whenever it grows, which would take their square.
constexpr int64_t patience = 64;
}  // namespace

// The heaviest edge is the greatest, of equal ones that of the first groups.
bool Contraction::Edge::operator<(const Edge& other) const {
  return std::tie(weight, other.a, other.b) < std::tie(other.weight, a, b);
}

Contraction::Contraction(const WeightedUnits& units)
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

void Contraction::reach(int count, double most) {
  double limit = most * std::accumulate(seconds_.begin(), seconds_.end(), 0.0) / count;
  contract(count, limit);
  while (left_ > count) {
    if (linked())
      limit = std::max(limit * most, least_product);
    else if (!bridge())
      break;
    contract(count, limit);
  }
}

// Weights fall as groups grow: an edge's is brought up to date when its turn comes.
void Contraction::contract(int count, double limit) {
  std::vector<Edge> heavier;
  for (const int a : groups())
    for (const auto& [b, flow] : flow_[a])
      if (a < b) heavier.push_back(edge(a, b));
  int64_t exact = patience * static_cast<int64_t>(heavier.size());
  std::priority_queue<Edge> edges({}, std::move(heavier));
  while (!edges.empty() && left_ > count) {
    const auto [weight, a, b] = edges.top();
    edges.pop();
    if (!flow_[a].contains(b) || seconds_[a] + seconds_[b] > limit) continue;
    const Edge now = edge(a, b);
    if (now.weight < (exact > 0 ? weight : weight / 2)) {
      edges.push(now);
      --exact;
    } else if (share(a, b)) {
      heavier.clear();
      merge(a, b, heavier);
      for (const Edge& other : heavier) edges.push(other);
    }
  }
}

// Whether there is an edge between groups that could be one but for their seconds.
bool Contraction::linked() const {
  for (const int a : groups())
    for (const auto& [b, flow] : flow_[a])
      if (a < b && share(a, b)) return true;
  return false;
}

// Edges without bytes between groups that can be one, each to the next in seconds where that will
// do. Returns whether there are any.
bool Contraction::bridge() {
  auto ordered = by_kind(groups());
  bool found = false;
  const auto link = [&](int a, int b) {
    if (!share(a, b)) return;
    flow_[a][b] = flow_[b][a] = 0;
    found = true;
  };
  for (size_t i = 0; i + 1 < ordered.size(); i += 2) link(ordered[i], ordered[i + 1]);
  if (found) return true;
  const auto few = lightest();
  for (size_t i = 0; i < few.size() && !found; ++i)
    for (size_t j = i + 1; j < few.size() && !found; ++j) link(few[i], few[j]);
  return found;
}

std::vector<int64_t> Contraction::labels() const {
  auto into = into_;
  std::vector<int64_t> result;
  for (int group : into) {
    while (into[group] != group) group = into[group] = into[into[group]];
    result.push_back(group);
  }
  return result;
}

Contraction::Edge Contraction::edge(int a, int b) const {
  const double flow = flow_[a].at(b), seconds = seconds_[a] * seconds_[b];
  return {flow * flow / std::max(least_product, seconds), std::min(a, b), std::max(a, b)};
}

// Whether a device may run and can hold both.
bool Contraction::share(int a, int b) const {
  for (int device = 0; device < d_; ++device)
    if (may_run(a, device) && may_run(b, device) &&
        (always_fits_ || bytes_[a] + bytes_[b] <= capacity_[device]))
      return true;
  return false;
}

// Makes the two groups one and adds its edges that have become heavier.
void Contraction::merge(int a, int b, std::vector<Edge>& heavier) {
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

std::vector<int> Contraction::groups() const {
  std::vector<int> result;
  for (int group = 0; group < static_cast<int>(into_.size()); ++group)
    if (into_[group] == group) result.push_back(group);
  return result;
}

// By the devices that they may use, and among these by seconds.
std::vector<int> Contraction::by_kind(const std::vector<int>& groups) const {
  auto result = groups;
  std::stable_sort(result.begin(), result.end(), [this](int a, int b) {
    const int order = compare_devices(a, b);
    return order ? order < 0 : seconds_[a] < seconds_[b];
  });
  return result;
}

// Of the groups that may use the same devices, the two that hold the fewest bytes: if no two of
// these can share a device, no others can.
std::vector<int> Contraction::lightest() const {
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

int Contraction::compare_devices(int a, int b) const {
  for (int device = d_ - 1; device >= 0; --device) {
    const int order = may_run(a, device) - may_run(b, device);
    if (order) return order;
  }
  return 0;
}

}  // namespace situate::partition
