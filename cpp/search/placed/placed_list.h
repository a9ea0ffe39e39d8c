// List scheduling of a placement that is given, within the devices' memory.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <vector>

#include "search/placed/admission.h"
#include "search/placed/copies.h"

namespace situate::search {

// What makes an op urgent: an early turn, and a long way from it to the end of the step, in
// seconds. Patience is the wait for an op that other devices await, as a share of the seconds of
// the op that could start instead.
struct Urgency {
  double turn = 1, path = 2, patience = 0;
};

// Whenever a device is free it starts, of the ops that are ready and may be admitted, the most
// urgent one: first those that another device waits for, directly or through other ops. A patient
// device starts no other op just before the last input of an awaited one arrives. Transfers are
// overlapped, and channels serve first what comes first.
class PlacedList {
 public:
  // Ops run in their turns where memory is short.
  PlacedList(const Copies& copies, Admission admission, Urgency urgency);

  // The ops as they start.
  std::vector<int32_t> order() &&;

 private:
  struct Event {
    double time;
    int32_t op;              // that ends, or -1 and
    int32_t tensor, target;  // what arrives where
    bool operator>(const Event& other) const { return time > other.time; }
  };
  using Ranks = std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>>;
  struct Ready {
    Ranks fresh;    // ranks of ops that were never refused
    Ranks refused;  // turns of those that were
  };
  struct Channel {
    bool busy = false;
    std::queue<Event> waiting;  // with their seconds as time
  };

  struct Opening {
    double time;
    int32_t op;
    bool operator>(const Opening& other) const { return time > other.time; }
  };
  using Openings = std::priority_queue<Opening, std::vector<Opening>, std::greater<>>;

  void rank(Urgency urgency);
  std::vector<double> paths() const;
  std::vector<uint8_t> find_awaited() const;
  void count_needs();
  void open(int op) { ready_[copies_.device(op)].fresh.push(rank_[op]); }
  void start_first(int device);
  void expect(const Event& arrival);
  void note_opening(int op);
  void meet(int op);
  bool waits(int device, int op);
  int take_first(Ranks& fresh);
  void start(int op);
  void force();
  void end(const Event& event);
  void send(int tensor);
  void serve(int channel);
  void arrive(int tensor, int target);
  int channel_of(int tensor, int target) const;

  const Copies& copies_;
  const Problem& p_;
  Admission admission_;
  const std::span<const int32_t> turns_;
  std::vector<int32_t> turn_;            // of each op
  std::vector<int32_t> rank_, by_rank_;  // of ops by urgency
  std::vector<int32_t> needs_;           // of each op: inputs that are not there
  std::vector<Ready> ready_;             // of each device
  std::vector<uint8_t> awaited_;         // ops that another device waits for
  // Inputs of each op that are on their way, with the time when the last of them arrives; and the
  // awaited ops of each device by the time when all their inputs are there.
  std::vector<int32_t> arriving_;
  std::vector<double> arrival_;
  std::vector<Openings> openings_;
  std::vector<uint8_t> busy_;  // devices
  std::vector<Channel> channels_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<int32_t> again_;    // ranks of ops that were refused before, the last first
  std::vector<int32_t> targets_;  // of the tensor at hand
  double now_ = 0, patience_;
  size_t first_ = 0;  // of `turns_` that may not have started
  std::vector<int32_t> order_;
};

}  // namespace situate::search
