// The eager decoder with blocking transfers (REGAL: A. Paliwal et al., ICLR 2020, A.4): a transfer
// occupies its sender, its receiver and its channel. Of all that can start, the item of the highest
// priority does.
#pragma once

#include <cstdint>
#include <vector>

#include "simulation/blocking/blocking_items.h"
#include "simulation/blocking/eager_between_two.h"
#include "simulation/timeline.h"

namespace situate::sim {

class BlockingEager {
 public:
  BlockingEager(const Problem& problem, BlockingItems& items);

  // Fills the timeline, its starts and ends only with `times`, and returns the makespan in seconds.
  double run(const Decision& decision, Timeline& timeline, bool times);

 private:
  // Items from one device to another; from a device to itself its ops. They are queued by their
  // places among one another, so that all queues together are no larger than one.
  struct Lane {
    int32_t channel;
    int32_t first;  // in `rank_in_lane_`, where the lanes' ranks stand one lane after the other
  };
  // Of an item that is to start.
  struct Opening {
    int32_t waits;  // for inputs, or for its producer
    int32_t lane;
    uint32_t place, rank;
  };
  struct Signal {
    double end;
    int32_t transfer;
  };
  template <int Levels>
  class Loop;

  void line_up();

  const Problem& problem_;
  BlockingItems& items_;
  EagerBetweenTwo between_two_;
  std::vector<Lane> lanes_;                  // d x d
  std::vector<std::vector<uint64_t>> room_;  // of each lane's queue
  std::vector<uint32_t> first_;              // rank in each queue; all bits set for none
  std::vector<int32_t> next_;                // of each lane
  std::vector<uint32_t> rank_in_lane_;
  std::vector<Opening> opening_;  // of every item
  // All bits set where a device or a channel is busy: no rank is below that.
  std::vector<uint32_t> busy_;
  // What each device does, and until when; infinite where it is idle.
  std::vector<int32_t> running_;
  std::vector<double> until_;
  std::vector<Signal> signals_;  // that take time and are under way: a heap, the next on top
};

}  // namespace situate::sim
