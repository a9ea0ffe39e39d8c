// Branch and bound: plans are divided by the memory that an op may use, or by its strategies, and
// each part has a relaxation of its own. The bound is the least of all parts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sharding/relaxation.h"
#include "sharding/stopped.h"

namespace situate::sharding {

class Branching {
 public:
  using Part = Relaxation::Record;

  // Of the plans in a part of an instance, which must outlive this.
  Branching(const Instance& whole, Part root);

  // Divides the part of least bound in two. Of each half, only plans that cost no more than the
  // cutoff stay. If stopped, the part stays as it is.
  void divide(double cutoff, const Stopped& stopped);

  // No plan costs less, but for those above the cutoffs; infinite if no part is left.
  double bound() const;
  // Strategies that the last relaxation favours; none at first.
  const std::vector<int>& chosen() const { return chosen_; }
  // Numbers of tables that the passes of the last division read.
  int64_t work() const { return work_; }

 private:
  std::vector<std::unique_ptr<Relaxation>> best_halves(const Relaxation& part, double cutoff,
                                                       const Stopped& stopped);
  bool ascend(Relaxation& part, int passes, double cutoff, const Stopped& stopped);
  void put(const Relaxation& part, double cutoff);

  const Instance& whole_;
  std::vector<Part> open_;  // a heap, the least bound first
  std::vector<int> chosen_;
  int64_t work_ = 0;
};

}  // namespace situate::sharding
