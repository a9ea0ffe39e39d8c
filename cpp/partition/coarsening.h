// Coarsening by heavy edges (G. Karypis, V. Kumar, SIAM J. Sci. Comput. 20(1), 1998): the two
// groups of units that exchange most for their size are contracted into one, again and again.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace situate::partition {

// Units and what flows between them in compressed rows, symmetric and without loops; `allowed` is
// units x devices.
struct WeightedUnits {
  int units = 0, d = 0;
  std::span<const int64_t> start, neighbour, bytes;
  std::span<const double> seconds;
  std::span<const int64_t> persistent, capacity;
  std::span<const uint8_t> allowed;
};

class Coarsening {
 public:
  explicit Coarsening(const WeightedUnits& units);

  // Merges along edges, the heaviest first, until there are `count` groups. None takes more than
  // `most` times the average seconds, where that can be; there are more than `count` groups if
  // those left share no device.
  void reach(int count, double most);
  // Of every unit, one of the units of its group.
  std::vector<int64_t> labels() const;

 private:
  struct Edge {
    double weight;  // bytes squared over the product of the groups' seconds (expansion*^2 of
                    // M. Holtgrewe et al., IPDPS 2010)
    int a, b;
    bool operator<(const Edge& other) const;
  };

  void contract_edges(int count, double limit);
  bool has_joinable_edge() const;
  bool add_empty_edges();
  Edge edge(int a, int b) const;
  bool may_run(int group, int device) const {
    return allowed_[static_cast<size_t>(group) * d_ + device] != 0;
  }
  bool share_device(int a, int b) const;
  void contract(int a, int b, std::vector<Edge>& heavier);
  std::vector<int> groups() const;
  std::vector<int> by_devices(const std::vector<int>& groups) const;
  std::vector<int> two_lightest_by_devices() const;
  int compare_devices(int a, int b) const;

  const int d_;
  int left_;  // groups
  bool always_fits_;
  std::vector<double> seconds_;
  std::vector<int64_t> bytes_;
  std::span<const int64_t> capacity_;
  std::vector<uint8_t> allowed_;  // groups x devices
  std::vector<int> into_;         // the group that a group became part of, or itself
  std::vector<std::unordered_map<int, double>> flow_;  // of each group: bytes to each neighbour
};

}  // namespace situate::partition
