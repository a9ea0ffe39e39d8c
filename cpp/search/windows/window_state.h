// The plan that a search in windows changes, and the changes that a window admits. A state of
// `metropolis_step`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.h"
#include "search/moves/move.h"
#include "simulation/incremental/window_timer.h"
#include "simulation/ordered_placement.h"

namespace situate::search {

using problem::Problem;

class WindowState {
 public:
  // `room` (d) are the bytes that each device has left for ops.
  WindowState(const Problem& problem, const int32_t* placement, const int32_t* order,
              std::span<const int64_t> room);

  const sim::OrderedPlacement& plan() const { return plan_; }
  sim::WindowTimer& timer() { return timer_; }
  const sim::WindowTimer& timer() const { return timer_; }

  // Ops of the window go to devices that have any of them now, and to no other. A move that no way
  // depends on would otherwise carry them all over the cluster, into slower and slower transfers.
  void keep_to_devices_in_use();

  void apply(const Change& change);
  void undo(const Change& change);
  // Infinite where the window does not admit the change.
  double evaluate(double limit);
  void accept(double) { timer_.commit(); }
  double cost() const { return timer_.committed(); }

 private:
  // An input from before the window and when it comes to the new device of its op.
  struct Arrival {
    int32_t input;
    double time;
  };

  bool admits(const Change& change);
  bool admits(int unit, int device);
  void receive(int op, int device);
  double arrival_on(int tensor, int device);
  void place(int unit, int from, int to);
  void exchange_arrivals();

  sim::OrderedPlacement plan_;
  sim::WindowTimer timer_;
  std::vector<int64_t> room_;
  sim::Effect effect_{0, 0};  // of the change applied last
  bool admitted_ = true;      // the change applied last
  std::vector<Arrival> arrivals_;
  std::vector<uint8_t> in_use_;  // d
};

}  // namespace situate::search
