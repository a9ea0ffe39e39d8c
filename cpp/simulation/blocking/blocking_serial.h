// The serial decoder with blocking transfers (REGAL: A. Paliwal et al., ICLR 2020, A.4): a transfer
// occupies its sender, its receiver and its channel. Ops and transfers are appended to the schedule
// one by one, of those that are open the one of the highest priority.
#pragma once

#include <cstdint>
#include <vector>

#include "simulation/blocking/blocking_items.h"
#include "simulation/rank_queue.h"
#include "simulation/timeline.h"

namespace situate::sim {

class BlockingSerial {
 public:
  BlockingSerial(const Problem& problem, BlockingItems& items);

  // Fills the timeline, its starts and ends only with `times`, and returns the makespan in seconds.
  double run(const Decision& decision, Timeline& timeline, bool times);

 private:
  struct Opening {
    int32_t waits;  // for inputs, or for its producer
    uint32_t rank;
  };
  template <int Levels, bool Plain, bool Times>
  class Appender;

  template <bool Plain, bool Times>
  void append_all(Timeline& timeline);
  template <bool Plain>
  void append_all(Timeline& timeline, bool times);
  void begin();
  void send_signals(Timeline& timeline) const;

  const Problem& problem_;
  BlockingItems& items_;
  const bool plain_;               // neither channels nor signals
  std::vector<Opening> opening_;   // of every item
  std::vector<double> free_;       // when each device is, and each channel
  std::vector<double> signalled_;  // n + 1: when its signals from other devices are there
  std::vector<uint64_t> open_;
};

}  // namespace situate::sim
