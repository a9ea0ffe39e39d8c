#include "bounds/minimum_cut.h"

#include <algorithm>
#include <limits>

namespace situate::bounds {

void MinimumCut::reset(int nodes) {
  edges_.clear();
  first_.assign(nodes, -1);
}

int MinimumCut::add_node() {
  first_.push_back(-1);
  return static_cast<int>(first_.size()) - 1;
}

void MinimumCut::add(int from, int to, int64_t capacity) {
  edges_.push_back({to, first_[from], capacity});
  first_[from] = static_cast<int>(edges_.size()) - 1;
  edges_.push_back({from, first_[to], 0});
  first_[to] = static_cast<int>(edges_.size()) - 1;
}

int64_t MinimumCut::solve(int source, int sink, int64_t& work) {
  int64_t flow = 0;
  while (layer(source, sink, work)) {
    at_ = first_;
    while (const int64_t more = augment(source, sink, work)) flow += more;
  }
  return flow;
}

// Finds how many edges every node is away from the source; false if the sink is out of reach.
bool MinimumCut::layer(int source, int sink, int64_t& work) {
  level_.assign(first_.size(), -1);
  level_[source] = 0;
  queue_.assign(1, source);
  for (size_t i = 0; i < queue_.size() && level_[sink] < 0; ++i) {
    const int node = queue_[i];
    for (int e = first_[node]; e >= 0; e = edges_[e].next, --work) {
      const auto& edge = edges_[e];
      if (edge.residual == 0 || level_[edge.to] >= 0) continue;
      level_[edge.to] = level_[node] + 1;
      queue_.push_back(edge.to);
    }
  }
  return level_[sink] >= 0 && work > 0;
}

// Sends what one shortest path holds; 0 if there is none left.
int64_t MinimumCut::augment(int source, int sink, int64_t& work) {
  path_.clear();
  for (int node = source; node != sink;) {
    int& e = at_[node];
    for (; e >= 0 && !open(node, edges_[e]); --work) e = edges_[e].next;
    if (work <= 0) return 0;
    if (e >= 0) {
      path_.push_back(e);
      node = edges_[e].to;
      continue;
    }
    if (path_.empty()) return 0;
    level_[node] = -1;  // no path leads through it
    node = edges_[path_.back() ^ 1].to;
    path_.pop_back();
  }
  work -= static_cast<int64_t>(path_.size());
  return send_along_path();
}

int64_t MinimumCut::send_along_path() {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const int e : path_)
    if (edges_[e].residual != uncuttable) least = std::min(least, edges_[e].residual);
  for (const int e : path_) {
    if (edges_[e].residual != uncuttable) edges_[e].residual -= least;
    if (edges_[e ^ 1].residual != uncuttable) edges_[e ^ 1].residual += least;
  }
  return least;
}

}  // namespace situate::bounds
