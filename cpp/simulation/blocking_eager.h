// The eager decoder with blocking transfers (REGAL: A. Paliwal et al., ICLR 2020, A.4): a transfer
// occupies its sender, its receiver and its channel. Of all that can start, the item of the highest
// priority does.
#pragma once

#include <cstdint>
#include <vector>

#include "simulation/blocking_items.h"
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

  void reset();
  void push(double time, int what);
  int pop();
  void enter(Ranks& heap, int item);
  void open(int op) { enter(ready_[decision_.placement[op]], op); }
  void arrive(int op) {
    if (--pending_[op] == 0) open(op);
  }
  void end(int what);
  void end_op(int op);
  void end_transfer(const Transfer& transfer);
  void want(int transfer, double now);
  uint32_t best_startable() const;
  bool start_best(double now);
  void run_from(double now, int item, double seconds);
  void start_op(int op, double now);
  void start_transfer(int index, double now);
  size_t pair(int source, int target) const {
    return static_cast<size_t>(source) * problem_.d + target;
  }

  const Problem& problem_;
  BlockingItems& items_;
  Timeline* timeline_ = nullptr;
  Decision decision_{};
  std::vector<int32_t> needs_, pending_;  // inputs that have not arrived
  std::vector<Event> events_;
  std::vector<int32_t> running_;      // op, or ops + transfer, on each device, -1 when idle
  std::vector<uint8_t> channel_busy_;
  std::vector<Ranks> ready_;   // ops of each device
  std::vector<Ranks> wanted_;  // transfers of each pair of devices
  std::vector<int32_t> new_;   // transfers requested at this instant
};

}  // namespace situate::sim
