// The makespan of an ordered placement that changes in a window alone, a range of positions of its
// order, with overlapped transfers. The times before the window are known. Behind it, the order of
// ops on devices and of transfers on channels stays as it is, so the longest way from each of them
// to the end is known, too. A change costs at most the ops of the window, however long the plan is.
//
// Windows open from the beginning to the end, each half over the one before. Ways to the end from
// behind a window stay valid until it opens, because they depend on later positions alone.
#pragma once

#include <vector>

#include "problem/op_seconds.h"
#include "problem/problem.h"
#include "simulation/incremental/sends.h"
#include "simulation/ordered_placement.h"

namespace situate::sim {

using problem::Problem;

class WindowTimer {
 public:
  // `step` is the number of positions from one window to the next, a multiple of `stride`.
  WindowTimer(const Problem& problem, const OrderedPlacement& plan, int step);

  static constexpr int stride = 16;  // positions from one checkpoint to the next

  // Opens the first window of the plan as it is now.
  void restart();
  // Opens the next window; false behind the last.
  bool open_next();
  int first() const { return first_; }
  int last() const { return last_; }
  bool contains(int position) const { return first_ <= position && position < last_; }

  // Seconds of the longest way through the window, of the plan committed last. At most the
  // makespan, and equal to it where that way is the longest of all.
  double committed() const { return committed_through_; }
  // The same of the plan, which differs from the committed one at the positions of `effect` alone.
  // Infinite as soon as it must exceed `limit`.
  double time(Effect effect, double limit);
  void commit();
  // Ops of the committed plan on a longest way that wait for a transfer, each with the op that
  // sends it, and ops that wait while their device runs what they do not read, each with the op
  // that it runs.
  std::vector<int32_t> held_up();
  // When an input comes whose producer stands before the window, from elsewhere.
  double& arrival_from_before(int input) { return arrival_[input]; }
  // When a tensor from before the window would come to a device to which it is not sent so far,
  // behind all that its channel sends before the window.
  double new_arrival(int tensor, int device) const;

 private:
  void open(int first);
  size_t row_behind_window() const;
  void save_ways(int row, const std::vector<double>& ways);
  double way_behind(int op, std::vector<double>& ways);
  double start_of(int op, int device) const;
  int waits_for(int op, int previous) const;
  bool reads(int op, int producer) const;
  bool send_outputs(int op, int device, double now, double limit);
  bool as_committed(int position) const;
  double* checkpoint(std::vector<double>& of, int position) {
    return of.data() + (position - first_) / stride * width_;
  }
  bool queues(int tensor) const { return problem_.contention && !problem_.signal[tensor]; }
  size_t place_of_channel(int source, int target) const {
    return problem_.d + problem_.channel[static_cast<size_t>(source) * problem_.d + target];
  }

  const Problem& problem_;
  const OrderedPlacement& plan_;
  const problem::OpSeconds seconds_;
  const int step_;
  const size_t times_, width_;  // devices and channels; and the longest way so far
  Sends sends_;
  int first_ = 0, last_ = 0;
  int begin_ = 0, end_ = 0;  // positions that were timed last
  int last_arrival_ = 0;     // last position of the window with an input at another time
  double through_ = 0, committed_through_ = 0;
  std::vector<double> start_;      // of the ops timed last
  std::vector<double> way_;        // from the start of an op to the end of the plan
  std::vector<double> least_way_;  // the same at least, for ops of the window in any plan
  std::vector<double> ways_;       // multiples of `step` x (devices and channels)
  std::vector<double> arrival_;    // of committed inputs from elsewhere
  std::vector<double> timed_arrival_;
  std::vector<int32_t> arrived_;  // inputs with a new arrival
  std::vector<double> state_;     // device and channel free times, longest way
  std::vector<double> checkpoints_, new_checkpoints_;
};

}  // namespace situate::sim
