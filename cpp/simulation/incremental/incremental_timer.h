// The makespan of an ordered placement, timed op by op in its order and only from where a change
// affects it. It equals the serial decoder's, except for channels that several pairs share with
// overlapped transfers: there transfers are requested in another order than they are timed in, and
// the result is an estimate.
#pragma once

#include <vector>

#include "problem/op_seconds.h"
#include "problem/problem.h"
#include "simulation/critical_path.h"
#include "simulation/incremental/sends.h"
#include "simulation/ordered_placement.h"

namespace situate::sim {

using problem::Problem;

class IncrementalTimer {
 public:
  // With `count_bytes` it keeps an estimate of the memory in use, as if ops ran in their order.
  IncrementalTimer(const Problem& problem, const OrderedPlacement& plan, bool count_bytes);

  // Makespan in seconds of the plan, which differs from the committed one in devices and order at
  // the positions of `effect` alone. Infinite as soon as it must exceed `limit` or, with
  // `within_memory`, as soon as the estimate of bytes exceeds a device's room. Timing ends behind
  // them as soon as all devices and channels are as in the committed plan.
  double time(Effect effect, double limit, bool within_memory);
  // Makes the plan timed last the committed one; its makespan must be finite.
  void commit();
  // Of the committed plan.
  const PlanTimes& times() const { return committed_; }
  // Takes the true peaks (d) of the committed plan: where the estimate exceeds them, later
  // estimates may exceed capacities by as much.
  void calibrate(const std::vector<int64_t>& peak);

 private:
  // First and last position at which a device uses a tensor.
  struct Uses {
    int32_t first, last;
  };

  double start_of(int op, int device) const;
  void receive_inputs(int op, int device);
  bool first_use(int tensor, int op, int device);
  void send_outputs(int op, int device, double now);
  void hold_persistent();
  bool count(int op, int device, bool within_memory);
  bool last_use(int tensor, int op, int device);
  const Uses* uses_of(int tensor);
  void arrive(int input, double time);
  bool as_committed(int position) const;
  bool channels_as(const double* before) const;
  void restore(int checkpoint);
  void save(int checkpoint);

  const Problem& problem_;
  const OrderedPlacement& plan_;
  const problem::OpSeconds seconds_;
  std::vector<double> tail_;   // longest path from an op to the end, all ops at their fastest
  std::vector<double> least_;  // fastest time of an op
  int stride_;                 // positions from one checkpoint to the next
  size_t times_ = 0;           // devices and channels
  size_t width_;               // doubles a checkpoint
  int first_ = 0, end_ = 0;    // positions that were timed last
  int last_arrival_ = 0;       // last position with an input that arrives at another time
  double committed_makespan_ = 0;
  const bool count_bytes_;
  // Device free times, channel free times, makespan, work left; live bytes and peaks of devices.
  std::vector<double> state_;
  double *live_ = nullptr, *peak_ = nullptr;
  std::vector<int32_t> holding_;               // ops with persistent bytes
  std::vector<std::vector<int32_t>> senders_;  // devices that use each channel
  std::vector<double> held_, committed_held_, room_, committed_peak_;
  std::vector<double> checkpoints_, new_checkpoints_;
  PlanTimes committed_, timed_;   // timed_: from `first_` on
  std::vector<int32_t> arrived_;  // inputs with a new arrival
  Sends sends_;
  std::vector<int32_t> hub_;       // of each tensor, -1 where it has few consumers
  std::vector<Uses> uses_;         // hubs x devices
  std::vector<int64_t> known_in_;  // of each hub: the evaluation that its uses are known for
  int64_t evaluation_ = 0;
};

}  // namespace situate::sim
