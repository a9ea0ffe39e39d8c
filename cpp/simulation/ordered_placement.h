// A placement with a topological order of all ops: what the serial decoder makes a schedule of.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/problem.h"
#include "simulation/placement.h"

namespace situate::sim {

class OrderedPlacement {
 public:
  OrderedPlacement(const Problem& problem, const int32_t* placement, const int32_t* order);

  void assign(const int32_t* placement, const int32_t* order);
  void place(int unit, int device) { placement_.place(unit, device); }
  // Moves the op at position `from` of the order to position `to`; those between close up.
  void reorder(int from, int to);

  // The first position of the order at which the schedule may differ after a unit has changed its
  // device, or after the op at one position went to the other.
  int first_effect_of_place(int unit) const;
  int first_effect_of_reorder(int from, int to) const;

  const Problem& problem() const { return placement_.problem(); }
  const Placement& placement() const { return placement_; }
  const std::vector<int32_t>& device() const { return placement_.device(); }
  const std::vector<int32_t>& order() const { return order_; }
  int position(int op) const { return position_[op]; }

 private:
  Placement placement_;
  std::vector<int32_t> order_, position_;
};

}  // namespace situate::sim
