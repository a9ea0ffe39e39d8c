// Orders of ops for a placement that is given.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "search/placed/admission.h"
#include "search/placed/copies.h"
#include "search/placed/placed_list.h"

namespace situate::search {

// List schedules in which the ops' turns are those, of the frugal order and the graph's own, that
// fit better.
class PlacedOrders {
 public:
  // `line` is a topological order of all ops.
  PlacedOrders(const Problem& problem, std::vector<int32_t> device, std::span<const int32_t> line);

  // Whether the ops fit in their turns, and so by every urgency, but for what transfers hold up.
  bool fits() const { return turns_->admission.excess() == 0; }
  std::vector<int32_t> order(Urgency urgency) const {
    return PlacedList(turns_->copies, turns_->admission, urgency).order();
  }

 private:
  struct Turns {
    Turns(const Problem& problem, std::span<const int32_t> device, std::vector<int32_t> turns)
        : order(std::move(turns)), copies(problem, device, order), admission(copies) {}
    std::vector<int32_t> order;
    Copies copies;
    Admission admission;
  };

  std::vector<int32_t> device_;
  std::unique_ptr<const Turns> turns_;
};

}  // namespace situate::search
