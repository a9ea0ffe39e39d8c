// The makespan of an ordered placement with blocking transfers, as the serial decoder has it with
// the transfers of blocking_transfers(). Timed from where a change affects it, and no further than
// until it must exceed a limit.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/problem.h"
#include "simulation/blocking/blocking_transfers.h"
#include "simulation/ordered_placement.h"

namespace situate::sim {

class BlockingTimer {
 public:
  // Whether a transfer's channel is free whenever its two devices are, so that channels need no
  // looking at. It is not where pairs without a device in common share a medium.
  static bool supports(const Problem& problem);

  BlockingTimer(const Problem& problem, const OrderedPlacement& plan);

  // Makespan in seconds of the plan, which differs from the committed one from position `first` on;
  // infinite as soon as it must exceed `limit`.
  double time(int first, double limit);
  // Makes the plan timed last the committed one; it must have been timed to its end.
  void commit();

 private:
  struct Input {
    int32_t tensor, producer;
  };
  struct Sending {
    int32_t at;      // committed plan: position of the first consumer; the number of ops for none
    int64_t timing;  // the last timing in which it was sent
  };
  struct Sent {
    int32_t position;
    size_t sending;
  };

  void receive(const Input& input, int device, int position);
  double signalled(int op, int device) const;
  double* checkpoint(std::vector<double>& of, int position) const {
    return of.data() + static_cast<size_t>(position / stride_) * width_;
  }

  const Problem& problem_;
  const OrderedPlacement& plan_;
  std::vector<double> tail_;   // longest path from an op to the end, all ops at their fastest
  std::vector<double> least_;  // fastest time of an op
  std::vector<int32_t> input_start_, signal_start_;
  std::vector<Input> inputs_, signals_;  // of every op; signals from other ops
  size_t width_;                         // doubles a checkpoint
  int stride_;                           // positions from one checkpoint to the next
  // Device free times, their sum, the work left; of every pair of devices the position at which
  // they met last: the end of a transfer between them.
  std::vector<double> state_, checkpoints_, new_checkpoints_;
  std::vector<double> end_, new_end_;  // of every op
  std::vector<uint8_t> instant_;       // of every tensor: whether its transfers take no time
  std::vector<Sending> sending_;       // tensors x devices
  std::vector<Sent> sent_, new_sent_;  // of the committed plan, and of this timing from `first_` on
  int first_ = 0;
  int64_t timing_ = 0;
};

}  // namespace situate::sim
