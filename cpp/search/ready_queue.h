// The ops that a list rule could run next on a device.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

namespace situate::search {

struct Candidate {
  double key;  // the least comes first
  int32_t op;
};
struct ComesLater {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.key != b.key ? a.key > b.key : a.op > b.op;
  }
};
using CandidateHeap = std::priority_queue<Candidate, std::vector<Candidate>, ComesLater>;

// `coming` are ops by the arrival of their inputs, and `waiting`, by a key of the rule's own, those
// whose inputs are there, so that they wait for the device alone.
struct ReadyQueue {
  CandidateHeap coming, waiting;

  bool empty() const { return coming.empty() && waiting.empty(); }
  // The op that can start first.
  const Candidate& top() const { return waiting.empty() ? coming.top() : waiting.top(); }
  void pop() { waiting.empty() ? coming.pop() : waiting.pop(); }
  // When the device, free from `free` on, could start it.
  double start(double free) const { return waiting.empty() ? coming.top().key : free; }

  // Lets ops wait whose inputs are there by now, and drops those at the top that are stale.
  template <typename Stale, typename Key>
  void advance(double now, Stale stale, Key key) {
    drop(coming, stale);
    while (!coming.empty() && coming.top().key <= now) {
      waiting.push({key(coming.top().op), coming.top().op});
      coming.pop();
    }
    drop(coming, stale);
    drop(waiting, stale);
  }

 private:
  template <typename Stale>
  static void drop(CandidateHeap& heap, Stale stale) {
    while (!heap.empty() && stale(heap.top().op)) heap.pop();
  }
};

}  // namespace situate::search
