// Branch and bound: plans are divided by the memory that an op may use, or by its strategies, and
// each part has a relaxation of its own. The bound is the least of all parts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "sharding/relaxation.h"

namespace situate::sharding {

class Branching {
 public:
  using Stopped = std::function<bool()>;
  using Part = Relaxation::Record;

  // Of the plans in a part of an instance, which must outlive this.
  Branching(const Instance& whole, Part root);

  // Divides the part of least bound in two. Of each, only plans that cost no more than the cutoff
  // are kept. When stopped, the part stays as it was.
  void divide(double cutoff, const Stopped& stopped);

  // No plan has a lower cost, unless it is above the cutoffs so far; infinite if no part is left.
  double bound() const;
  // Strategies that the last relaxation favours; none at first.
  const std::vector<int>& chosen() const { return chosen_; }
  // Passes over ops, of the last division.
  int passes() const { return passes_; }

 private:
  using Keep = std::vector<uint8_t>;
  using Halves = std::pair<Keep, Keep>;

  bool ascend(Relaxation& part, int passes, double cutoff, const Stopped& stopped);
  void put(const Relaxation& part, double cutoff);

  const Instance& whole_;
  std::vector<Part> open_;  // a heap, the least bound first
  std::vector<int> chosen_;
  int passes_ = 0;
};

}  // namespace situate::sharding
