// Decodes a placement and priorities to the one schedule that they stand for, by the rules of
// docs/execution-model.md.
#pragma once

#include "problem/problem.h"

namespace situate::sim {

using problem::Problem;

// Eager: a free device starts the ready op of the highest priority. Serial: every device runs its
// ops in the priority-topological order of all ops, and waits for the next where it is not ready.
enum class Decoder { eager, serial };

struct Decision {
  const int32_t* placement;                  // n
  const float* priority;                     // n
  const float* transfer_priority = nullptr;  // m x d, or null: the best consumer's priority
};

struct Transfer {
  int32_t tensor, source, target;
  int32_t waiting;         // consumers on the target that have not ended
  int32_t next_of_tensor;  // another transfer of the same tensor, -1 at the end
  int32_t next_in_queue;   // behind this one in its channel's queue, -1 at the end
  float priority;
  double requested, start, end;
};

class Simulator {
 public:
  explicit Simulator(const Problem& problem);

  // Returns the makespan in seconds and writes the peaks (d) in bytes. start(), end() (n) and
  // transfers() hold the schedule until the next call.
  double run(const Decision& decision, Decoder decoder, int64_t* peak);

  const std::vector<double>& start() const { return start_; }
  const std::vector<double>& end() const { return end_; }
  const std::vector<Transfer>& transfers() const { return transfers_; }

 private:
  struct Event {
    double time;
    int32_t what;  // a device whose op ends, or devices + a transfer that ends
  };
  struct Channel {
    int32_t first = -1, last = -1;  // queue of those that came in the order in which they go
    std::vector<int32_t> others;    // heap
    bool busy = false, touched = false;
    bool waits() const { return first >= 0 || !others.empty(); }
  };

  void reset();
  void take_persistent(int64_t* peak);
  void open(int op);
  int take_best(int device);

  // Live: whether bytes are counted at every instant as events happen; otherwise they are counted
  // from the finished schedule.
  template <bool Serial, bool Live>
  double overlapped(int64_t* peak);
  template <bool Serial, bool Live>
  void start_idle_devices(double now);
  template <bool Live>
  void end_op(int device);
  template <bool Live>
  void end_transfer(int transfer);
  template <bool Live>
  void launch_requests(double now);
  template <bool Live>
  void begin_transfer(int transfer, double now);
  template <bool Live>
  void send_outputs(int op);
  template <bool Live>
  void free_inputs(int op);
  void free_if_done(int tensor);
  void arrive(int op) {
    if (--pending_[op] == 0) open(op);
  }
  void push(double time, int what);
  int pop();
  void priority_topological_sequences();

  class BlockingSerial;
  double blocking_eager();
  double blocking_serial();
  bool start_best_item(double now);
  void release(int what);
  void want(int request, double now);
  bool goes_first(int a, int b) const;
  auto goes_behind() const {
    return [this](int a, int b) { return goes_first(b, a); };
  }
  void enqueue(int transfer, double now);
  int take_first(Channel& channel);
  int add_transfer(int tensor, int target, float priority);
  void peak_over_time(double makespan, int64_t* peak);
  void peak_per_step(int64_t* peak);

  const Problem& problem_;
  Decision decision_{};
  std::vector<int32_t> needs_, pending_;  // inputs that have not arrived
  std::vector<double> start_, end_;
  std::vector<Event> events_;
  std::vector<int32_t> running_;                // op on each device, -1 when idle
  std::vector<std::vector<uint64_t>> ready_;    // heap of each device
  std::vector<std::vector<int32_t>> sequence_;  // serial: ops of each device in order
  std::vector<int32_t> next_;                   // serial: place of each device in its sequence
  std::vector<Transfer> transfers_;
  std::vector<int32_t> first_transfer_;  // of each tensor, -1 for none
  std::vector<int32_t> requests_;        // transfers requested at this instant
  std::vector<Channel> channels_;
  std::vector<int32_t> touched_;  // channels that may start a transfer at this instant
  std::vector<int32_t> slot_;     // transfer of the tensor at hand to each device
  std::vector<int32_t> holders_;  // local consumers and outgoing transfers a tensor waits for
  std::vector<int64_t> used_;     // bytes on each device now
  std::vector<std::vector<int32_t>> wanted_;  // blocking: heap of pending transfers of each pair
};

}  // namespace situate::sim
