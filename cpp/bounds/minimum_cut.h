// Minimum cuts by Dinic's algorithm (Soviet Math. Doklady 11, 1970), with edges that no cut
// crosses.
#pragma once

#include <cstdint>
#include <vector>

namespace situate::bounds {

class MinimumCut {
 public:
  static constexpr int64_t uncuttable = -1;

  // Forgets all edges; nodes are 0 .. nodes - 1.
  void reset(int nodes);
  // One more node, and its number.
  int add_node();
  // Uncuttable edges alone must not lead from the source to the sink.
  void add(int from, int to, int64_t capacity);
  // The capacity of a minimum cut; where looking at `work` edges, which are counted down, is not
  // enough, a flow, which no cut has less capacity than.
  int64_t solve(int source, int sink, int64_t& work);

 private:
  struct Edge {
    int to, next;      // `next` edge of the same node, or -1
    int64_t residual;  // or `uncuttable`
  };

  bool layer(int source, int sink, int64_t& work);
  int64_t augment(int source, int sink, int64_t& work);
  int64_t send_along_path();
  bool open(int node, const Edge& edge) const {
    return edge.residual != 0 && level_[edge.to] == level_[node] + 1;
  }

  std::vector<Edge> edges_;  // each followed by its reverse
  std::vector<int> first_, at_, level_, queue_, path_;
};

}  // namespace situate::bounds
