// The serial decoder with blocking transfers (REGAL: A. Paliwal et al., ICLR 2020, A.4): a transfer
// occupies its sender, its receiver and its channel. Ops and transfers are appended to the schedule
// one by one, of those that are open the one of the highest priority.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulation/blocking/blocking_items.h"
#include "simulation/rank_queue.h"
#include "simulation/timeline.h"

namespace situate::sim {

class BlockingSerial {
 public:
  BlockingSerial(const Problem& problem, BlockingItems& items);

  // Fills the timeline and returns the makespan in seconds.
  double run(const Decision& decision, Timeline& timeline);

 private:
  // An op or a transfer, so that both are appended by the same instructions: where keys are random
  // a processor guesses every other branch between the two wrong.
  struct Item {
    double seconds;
    int32_t source, target;     // an op's device twice
    int32_t channel;            // an op, or a transfer without contention, has its source's own
    int32_t after;              // op whose inputs, or whose end, it waits for
    int32_t opens, last_opens;  // items that it opens
    const BlockingItems::Reader *readers, *last_reader;
  };
  struct Op {
    double arrival;  // of the inputs so far; once the op is taken, its end
    int32_t waits;   // inputs that have not arrived
    int32_t device;
    uint32_t rank;
  };
  template <int Levels>
  class Appender;

  template <int Levels>
  void append_all(Timeline& timeline);
  void add_ops(const Decision& decision);
  void add_transfers(const Timeline& timeline);
  void send_signals(Timeline& timeline) const;

  const Problem& problem_;
  BlockingItems& items_;
  std::vector<int32_t> needs_;  // n: inputs
  std::vector<Item> item_;
  std::vector<Op> ops_;       // and one that transfers end
  std::vector<double> free_;  // when each device, each channel, and each device's own channel is
  std::vector<uint64_t> open_;
};

}  // namespace situate::sim
