// Baechi's list rules for devices of finite memory, m-ETF and m-SCT (B. Jeon et al., SoCC 2020).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.h"
#include "search/list_rules.h"
#include "search/partial_schedule.h"
#include "search/ready_queue.h"

namespace situate::search {

// m-ETF: of all ready ops and the devices with memory for them, the pair that can start first; ties
// go to the graph's order. m-SCT besides: a device that has run an op and can start the op's
// favourite child sooner than any other device waits for it, and runs until then only what is
// urgent: what could start on every device by now.
class MemoryConstrained {
 public:
  // `room` is the share of every device's memory that may be filled. `preferred` (d) are the
  // devices that take all they can; the others take what none of those may run or has room for.
  // `favourite` (n) names the favourite child of every op, -1 where it has none.
  MemoryConstrained(const Problem& problem, double room, std::span<const uint8_t> preferred,
                    std::span<const int32_t> favourite);

  // Throws OutOfTime after the deadline.
  Listed listed(Deadline deadline) &&;

 private:
  struct Pair {
    int op = -1, device = -1;
    double start = 0;
  };

  bool takes(int device, int op) const;
  bool fits(int op, int device) const { return partial_.shortage(op, device) == 0; }
  double start(int op, int device) const;
  void enter(int op);
  void push(int op, int device);
  void readmit(int device);

  Pair next();
  bool comes_before(const Pair& a, const Pair& b) const;
  Pair first_on(int device);
  Pair awaited_on(int device, double now);
  Pair urgent_on(int device, double before);
  Pair least_lacking();
  void place(const Pair& pair);
  void follow(int unit);

  const Problem& p_;
  PartialSchedule partial_;
  const std::span<const uint8_t> preferred_;
  const std::span<const int32_t> favourite_;
  std::vector<ReadyQueue> queues_;      // of each device
  std::vector<CandidateHeap> lacking_;  // of each device: ops it has no memory for, by how full it
                                        // may be for them
  ReadyQueue urgent_;                   // by the last arrival of their inputs on any device
  CandidateHeap in_order_;              // all ready ops by place in the graph's order
  std::vector<int32_t> unplaced_inputs_;  // of each op, deferred producers not counted
  std::vector<int32_t> last_;             // op on each device, -1 before the first
  std::vector<uint8_t> ready_;            // ops all of whose inputs are placed
  std::vector<uint8_t> settled_;          // units that have a device
};

}  // namespace situate::search
