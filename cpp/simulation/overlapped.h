// Both decoders with overlapped transfers: a loop over events that counts memory at every instant
// as they happen.
#pragma once

#include <cstdint>
#include <vector>

#include "simulation/live_bytes.h"
#include "simulation/priority_order.h"
#include "simulation/rank_queue.h"
#include "simulation/timeline.h"

namespace situate::sim {

class Overlapped {
 public:
  Overlapped(const Problem& problem, Timeline& timeline, LiveBytes& bytes);

  // Fills the timeline, counts the bytes where they are measured at every instant, and returns the
  // makespan in seconds.
  double run(const Decision& decision, bool serial, bool count_bytes);

 private:
  struct Event {
    double time;
    int32_t what;  // a device whose op ends, or devices + a transfer that ends
  };
  struct Request {  // of a transfer
    double at;
    float priority;
    int32_t next;  // behind this one in its channel's queue, -1 at the end
  };
  struct Channel {
    int32_t first = -1, last = -1;  // queue of those that came in the order in which they go
    std::vector<int32_t> others;    // heap
    bool busy = false, touched = false;
    bool waits() const { return first >= 0 || !others.empty(); }
  };

  // Live: whether bytes are counted at every instant.
  template <bool Serial, bool Live>
  double simulate();
  template <bool Serial, bool Live>
  void start_idle_devices(double now);
  template <bool Serial, bool Live>
  void end_op(int device);
  template <bool Serial, bool Live>
  void end_transfer(int transfer);
  template <bool Serial, bool Live>
  void send(int tensor, int here);
  template <bool Live>
  void launch_requests(double now);
  template <bool Live>
  void begin_transfer(int transfer, double now);
  void reset();
  void open_first();
  void split_by_device();
  void open(int op) { ready_[decision_.placement[op]].insert(order_.rank_of(op)); }
  template <bool Serial>
  void arrive(int op) {
    if (--pending_[op] == 0 && !Serial) open(op);
  }
  void push(double time, int what);
  int pop();
  int request(int tensor, int target);
  bool goes_first(int a, int b) const;
  auto goes_behind() const {
    return [this](int a, int b) { return goes_first(b, a); };
  }
  bool occupies_channel(const Transfer& transfer) const {
    return problem_.contention && !problem_.signal[transfer.tensor];
  }
  int channel_of(const Transfer& transfer) const {
    return problem_.channel[static_cast<size_t>(transfer.source) * problem_.d + transfer.target];
  }
  void enqueue(int transfer, double now);
  void touch(int channel);
  int take_first(Channel& channel);

  const Problem& problem_;
  Timeline& timeline_;
  LiveBytes& bytes_;
  Decision decision_{};
  std::vector<int32_t> needs_, pending_;  // inputs that have not arrived
  std::vector<int32_t> by_index_;         // all ops
  PriorityOrder order_;
  std::vector<Event> events_;
  std::vector<int32_t> running_;                // op on each device, -1 when idle
  std::vector<RankQueue<5>> ready_;             // of each device
  std::vector<std::vector<uint64_t>> room_;     // of each such queue
  std::vector<std::vector<int32_t>> sequence_;  // serial: ops of each device in order
  std::vector<int32_t> next_;                   // serial: place of each device in its sequence
  std::vector<Request> requests_;               // of each transfer
  std::vector<int32_t> new_;                    // transfers requested at this instant
  std::vector<Channel> channels_;
  std::vector<int32_t> touched_;   // channels that may start a transfer at this instant
  std::vector<int32_t> starting_;  // the transfers that do
  std::vector<int32_t> slot_;      // transfer of the tensor at hand to each device
};

}  // namespace situate::sim
