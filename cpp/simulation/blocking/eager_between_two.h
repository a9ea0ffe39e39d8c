// The eager decoder with blocking transfers between two devices, whose signals take no time. A
// transfer starts only where both devices are idle, and nothing else runs until it ends; from when
// an op starts until both are idle again there are ops only. So nobody looks for what may start
// among all lanes but where both are idle, and a shared channel makes no difference.
#pragma once

#include <cstdint>
#include <vector>

#include "simulation/blocking/blocking_items.h"
#include "simulation/timeline.h"

namespace situate::sim {

class EagerBetweenTwo {
 public:
  explicit EagerBetweenTwo(const Problem& problem);

  // Of items that were collected: as BlockingEager::run.
  double run(const BlockingItems& items, Timeline& timeline, bool times);

 private:
  static constexpr int devices = 2, lanes = devices * devices;
  // Of an item that is to start.
  struct Opening {
    int32_t waits;  // for inputs, or for its producer
    uint32_t rank;
    int32_t lane;  // the source times 2, and the target
  };
  template <int Levels, bool Times>
  class Loop;

  void line_up(const BlockingItems& items);
  template <bool Times>
  double run_for(const BlockingItems& items, Timeline& timeline);

  const int32_t n_;
  std::vector<Opening> opening_;       // of every item
  std::vector<uint64_t> room_[lanes];  // of each lane's queue
};

}  // namespace situate::sim
