// The eager decoder with blocking transfers (REGAL: A. Paliwal et al., ICLR 2020, A.4): a transfer
// occupies its sender, its receiver and its channel. Of all that can start, the item of the highest
// priority does.
#pragma once

#include <cstdint>
#include <vector>

#include "simulation/blocking/blocking_items.h"
#include "simulation/timeline.h"

namespace situate::sim {

class BlockingEager {
 public:
  BlockingEager(const Problem& problem, BlockingItems& items);

  // Fills the timeline and returns the makespan in seconds.
  double run(const Decision& decision, Timeline& timeline);

 private:
  struct Signal {
    double end;
    int32_t transfer;
  };
  template <int Levels>
  class Loop;

  void rank_by_pair(const Timeline& timeline);
  size_t pair(int source, int target) const {
    return static_cast<size_t>(source) * problem_.d + target;
  }

  const Problem& problem_;
  BlockingItems& items_;
  std::vector<int32_t> needs_, pending_;  // n: inputs that have not arrived
  // What each device does, and until when; infinite where it is idle.
  std::vector<int32_t> running_;
  std::vector<double> until_;
  std::vector<Signal> signals_;  // that take time and are under way: a heap, the next on top
  std::vector<int32_t> new_;     // transfers requested at this instant
  // All bits set where a device or a channel is busy: no rank is below that.
  std::vector<uint32_t> device_busy_, channel_busy_;
  // Ops that each device could start, and transfers that each pair of devices could: room of a
  // queue, and its first rank; all bits set for none.
  std::vector<std::vector<uint64_t>> ready_, wanted_;
  std::vector<uint32_t> first_ready_, first_wanted_;
  // Transfers of a pair are queued by their places among its own, whose ranks stand one pair after
  // the other, so that all queues together are no larger than one.
  std::vector<int32_t> first_of_pair_, next_of_pair_;  // the last is that of ops
  std::vector<int32_t> pair_of_, place_in_pair_;       // of every item
  std::vector<uint32_t> rank_in_pair_;
};

}  // namespace situate::sim
