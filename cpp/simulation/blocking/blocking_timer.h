// The makespan of an ordered placement with blocking transfers, as the serial decoder has it with
// the transfers of blocking_transfers().
//
// A change is timed from the first place that it affects. Behind the last one devices do the same
// as in the committed plan, whose *tails* tell how long that takes from any position on: so a
// change is timed to its end only where the tails admit that it is kept.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/problem.h"
#include "simulation/blocking/blocking_transfers.h"
#include "simulation/blocking/early_transfers.h"
#include "simulation/ordered_placement.h"

namespace situate::sim {

// A change is told piece by piece after all of it was made, from begin_change() on; then it is
// timed, and committed or taken back.
class BlockingTimer {
 public:
  // Whether a transfer's channel is free whenever its two devices are, so that channels need no
  // looking at. It is not where pairs without a device in common share a medium.
  static bool supports(const Problem& problem);

  BlockingTimer(const Problem& problem, const OrderedPlacement& plan, const EarlyTransfers& early);

  void begin_change();
  void unit_moved(int unit, int from, int to);  // devices
  void op_moved(int from, int to);              // positions of the order
  void transfer_moved(const EarlyTransfers::Transfer& transfer);

  // Makespan in seconds of the changed plan; infinite as soon as it must exceed `limit`.
  double time(double limit);
  // Makes the plan timed last, whose makespan is finite, the committed one.
  void commit();

 private:
  struct Input {
    int32_t tensor, producer;
    bool instant;
  };
  // Two devices stop for each other, for a tensor that takes time or for -1.
  struct Meeting {
    double seconds;
    int32_t tensor, source, target;
  };
  struct Sending {
    int32_t at;      // position in the committed plan; the number of ops for none
    int64_t timing;  // the last timing in which it was sent
  };

  void index_inputs();
  void derive_tails();

  void affect(int position);
  void change(int position);
  void affect_transfer(const EarlyTransfers::Transfer& transfer);
  void affect_outputs(int op);

  bool as_committed(int position) const;
  double bound_from(int position) const;
  bool receives(int op, int device) const;
  void keep_checkpoint(int position);
  double resume(double limit);
  bool converged(int position) const;
  void run(int op, int device, double start);
  void receive(const Input& input, int op, int position);
  void send_early(int op, int position);
  void send(const EarlyTransfers::Transfer& transfer, int source, int op, int position);
  void meet(const Meeting& meeting, int op, int position);
  void stop_for(const Meeting& meeting);
  double signalled(int op, int device) const;

  void keep_meetings();
  void keep_tails();

  Sending& sending(const EarlyTransfers::Transfer& transfer) {
    return sending_[static_cast<size_t>(transfer.tensor) * problem_.d + transfer.target];
  }
  bool is_checkpoint(int position) const { return (position & (stride_ - 1)) == 0; }
  double* checkpoint(std::vector<double>& of, int position) const {
    return of.data() + static_cast<size_t>(position / stride_) * width_;
  }
  const double* checkpoint(const std::vector<double>& of, int position) const {
    return of.data() + static_cast<size_t>(position / stride_) * width_;
  }

  const Problem& problem_;
  const OrderedPlacement& plan_;
  const EarlyTransfers& early_;
  std::vector<double> longest_;  // path from an op to the end, all ops at their fastest
  std::vector<double> least_;    // fastest time of an op
  const double slack_;           // times sums of times: they are no larger than without rounding
  std::vector<int32_t> input_start_, signal_start_;
  std::vector<Input> inputs_, signals_;  // of every op; signals from other ops
  std::vector<uint8_t> instant_;         // of every tensor: whether its transfers take no time
  int pairs_;                            // of devices, where any tensor is instant
  int stride_;                           // positions from one checkpoint to the next
  size_t width_;                         // doubles a checkpoint
  std::vector<int32_t> pair_;            // devices x devices: number of the pair
  // Device free times, their sum, the work left; of every pair of devices the position at which
  // they met last.
  std::vector<double> state_, checkpoints_, new_checkpoints_;
  std::vector<double> tails_, tail_;   // devices, at every checkpoint
  std::vector<double> end_, new_end_;  // of every op
  std::vector<Sending> sending_;       // tensors x devices
  std::vector<int32_t> meeting_start_, meeting_count_, new_meeting_count_;
  std::vector<Meeting> meetings_, new_meetings_;  // of every op
  double makespan_ = 0, new_makespan_ = 0;
  int first_ = 0, last_ = 0;                  // positions that the change affects
  int changed_first_ = 0, changed_last_ = 0;  // positions of ops that it changes
  int last_instant_ = 0;                      // of the consumers of instant tensors of such ops
  int settled_ = 0;    // from here on devices do the same as in the committed plan
  int converged_ = 0;  // and from here on at the same times
  int64_t timing_ = 0;
};

}  // namespace situate::sim
