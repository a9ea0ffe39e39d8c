// Which ops of a chromosome are bred together: the linkage of a genetic algorithm, as probabilities
// of edges. Each chromosome draws its own parts of the graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "random/splitmix64.h"

namespace situate::search {

using random::SplitMix64;

class Linkage {
 public:
  // Without edges every op is a part of its own.
  Linkage() = default;
  // Edges between ops, and the probability that an edge joins the parts of its ends.
  Linkage(std::span<const int32_t> source, std::span<const int32_t> target,
          std::span<const float> together);

  bool empty() const { return edges_.empty(); }
  // Draws the part of each op: the least op of it.
  void draw(SplitMix64& random, std::span<int32_t> part) const;

 private:
  struct Edge {
    int32_t a, b;
    uint32_t threshold;  // of 2^16
  };
  std::vector<Edge> edges_;
};

}  // namespace situate::search
