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
  struct Event {
    double time;
    int32_t what;  // a device whose op ends, or devices + a transfer that ends
  };
  using Ranks = std::vector<uint32_t>;  // a heap, the first on top
  template <int Levels>
  class Loop;

  const Problem& problem_;
  BlockingItems& items_;
  std::vector<int32_t> needs_, pending_;  // n: inputs that have not arrived
  std::vector<Event> events_;             // a heap, the next on top
  std::vector<int32_t> running_;          // op on each device
  // All bits set where a device or a channel is busy: no rank is below that.
  std::vector<uint32_t> device_busy_, channel_busy_;
  std::vector<std::vector<uint64_t>> ready_;  // of each device: the room of a queue
  std::vector<Ranks> wanted_;                 // transfers of each pair of devices
  std::vector<uint32_t> first_wanted_;        // of each pair; all bits set for none
  std::vector<int32_t> new_;                  // transfers requested at this instant
};

}  // namespace situate::sim
