// Bisection of a graph by exchanges: B. W. Kernighan, S. Lin, An Efficient Heuristic Procedure for
// Partitioning Graphs, Bell System Technical Journal 49(2), 1970.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "partition/gain_queue.h"

namespace situate::partition {

// A graph of units in compressed rows, symmetric and without loops; `weight` of its edges, `load`
// of its units.
struct WeightedGraph {
  std::span<const int64_t> start, neighbour;
  std::span<const double> weight, load;
};

class KernighanLin {
 public:
  // Whether a unit is on side 0 or 1; on either by choice of the caller, and to stay there; or not
  // part of the bisection.
  enum class Side : int8_t { free = -1, first = 0, second = 1, outside = 2 };

  // `share` of the load is to be on the first side. Free units are put on sides in this order.
  KernighanLin(const WeightedGraph& graph, std::span<const int8_t> side, double share,
               std::span<const int64_t> order);

  // Passes of exchanges until one lessens the cut no more.
  void improve();
  // Of every unit, 0 or 1; 2 outside.
  std::vector<int8_t> side() && { return std::move(side_); }

 private:
  // Two units that change sides, or one that does (the other is -1: a dummy without edges).
  struct Exchange {
    int from_first = -1, from_second = -1;
    double gain = 0;
    bool any() const { return from_first >= 0 || from_second >= 0; }
  };

  void fill(std::span<const int64_t> order, double share);
  bool pass();
  void begin_pass();
  Exchange best_exchange();
  void look_at_single(int side, Exchange& best) const;
  void look_at_pairs(Exchange& best);
  bool balanced(double moved) const;
  void apply(const Exchange& exchange);
  void move(int unit);

  const WeightedGraph graph_;
  std::vector<int8_t> side_;
  std::vector<uint8_t> free_;     // whether a unit may move at all
  std::vector<double> gain_;      // of moving a unit: external less internal weight
  std::vector<uint8_t> is_open_;  // whether a unit may still move in this pass
  GainQueue open_[2];             // units of each side that may
  std::vector<double> between_;   // weight from the unit at hand to each of its neighbours
  double load_[2] = {0, 0};
  double target_ = 0, slack_ = 0;  // load of the first side, and how far it may be from that
};

}  // namespace situate::partition
