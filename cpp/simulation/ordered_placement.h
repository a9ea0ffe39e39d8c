// A placement with a topological order of all ops: what the serial decoder makes a schedule of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "problem/problem.h"
#include "simulation/placement.h"

namespace situate::sim {

// Positions of an order between which a change may alter anything but times.
struct Effect {
  int first, last;

  void include(int position) {
    first = std::min(first, position);
    last = std::max(last, position);
  }
};

class OrderedPlacement {
 public:
  OrderedPlacement(const Problem& problem, const int32_t* placement, const int32_t* order);

  void assign(const int32_t* placement, const int32_t* order);
  void place(int unit, int device) { placement_.place(unit, device); }
  // Moves the op at position `from` of the order to position `to`; those between close up.
  void reorder(int from, int to);

  // Includes the positions that a unit affects which has changed its device, or an op that went
  // from one position to the other; with `uses` those where a tensor is used first or last on a
  // device.
  void include_place(int unit, bool uses, Effect& effect) const;
  void include_reorder(int from, int to, Effect& effect) const;

  const Problem& problem() const { return placement_.problem(); }
  const Placement& placement() const { return placement_; }
  const std::vector<int32_t>& device() const { return placement_.device(); }
  const std::vector<int32_t>& order() const { return order_; }
  int position(int op) const { return position_[op]; }

 private:
  void include_consumers(int tensor, Effect& effect) const;

  Placement placement_;
  std::vector<int32_t> order_, position_;
};

}  // namespace situate::sim
