// The placement that annealing of loads changes, with the busy time of every device and channel in
// steady pipelined operation. A change costs only the tensors that it touches.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/problem.h"
#include "search/moves/move.h"
#include "simulation/placement.h"

namespace situate::search {

struct BestPlacement {
  bool fits = false;
  double period = 0;  // the load of the busiest device or channel
  std::vector<int32_t> device;
};

class LoadState {
 public:
  LoadState(const Problem& problem, const int32_t* placement);
  LoadState(const LoadState&) = delete;
  LoadState& operator=(const LoadState&) = delete;

  // Continues from another placement; the best one seen is kept.
  void restart(const int32_t* placement);
  // From now on ops hold so many bytes, and devices have so much room; the best is sought anew.
  void weigh(const int64_t* bytes, const int64_t* capacity);
  // Adds all loads up anew: sums of differences drift.
  void recount();

  void apply(const Change& change);
  void undo(const Change& change);
  // A smooth maximum of the loads, in seconds, with a penalty for memory over capacity. It costs
  // little, so that it does not end early at `limit`.
  double evaluate(double limit);
  void accept(double cost);

  // Gives one unit, or all of them, another device, without a look at the cost.
  void place(int unit, int device);
  void place_all(int device);

  double cost() const { return cost_; }
  double load(int device) const { return load_[device]; }
  int64_t capacity(int device) const { return capacity_[device]; }
  bool has_room(int unit, int device) const {
    return held_[device] + held_by_unit_[unit] <= capacity_[device];
  }
  const BestPlacement& best() const { return best_; }
  const Problem& problem() const { return placement_.problem(); }
  const sim::Placement& placement() const { return placement_; }

 private:
  void weigh_units();
  void add_tensor(int tensor, double sign);
  void keep_if_best();
  double overflow() const;

  sim::Placement placement_;
  std::vector<int32_t> consumers_on_;  // tensors x devices
  std::vector<double> load_;           // devices, then channels
  std::vector<int64_t> bytes_;         // of ops: persistent ones, unless weighed
  std::vector<int64_t> capacity_;      // of devices
  std::vector<int64_t> held_;          // bytes on devices
  std::vector<int64_t> held_by_unit_;
  std::vector<int32_t> touched_;      // tensors of the unit at hand
  std::vector<uint32_t> touched_in_;  // of each tensor: the last unit move that touched it
  uint32_t now_ = 0;                  // may wrap around
  double period_ = 0;                 // of the placement evaluated last
  bool fits_ = false;                 // likewise
  double cost_ = 0;
  BestPlacement best_;
};

}  // namespace situate::search
