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

// List schedules in which the ops' turns are the first to fit of the draining order, the frugal one
// and the graph's own, or else those that come nearest to it.
class PlacedOrders {
 public:
  // `line` is a topological order of all ops.
  PlacedOrders(const Problem& problem, std::vector<int32_t> device, std::span<const int32_t> line);

  const Problem& problem() const { return turns_->copies.problem(); }
  // Whether the ops fit in their turns, and so by every urgency, but for what transfers hold up.
  bool fits() const { return turns_->admission.excess() == 0; }
  // `reserved` are bytes (d) to be left free, where there is room for that.
  std::vector<int32_t> order(Urgency urgency, std::span<const int64_t> reserved) const {
    Admission admission = turns_->admission;
    admission.reserve(reserved);
    return PlacedList(turns_->copies, std::move(admission), urgency).order();
  }

 private:
  struct Turns {
    Turns(const Problem& problem, std::span<const int32_t> device, std::vector<int32_t> turns)
        : order(std::move(turns)), copies(problem, device, order), admission(copies) {}
    std::vector<int32_t> order;
    Copies copies;
    Admission admission;
  };

  void consider(std::vector<int32_t> turns);

  std::vector<int32_t> device_;
  std::unique_ptr<const Turns> turns_;
};

}  // namespace situate::search
