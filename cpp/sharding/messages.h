// Lower bounds of a sharding problem by sequential tree-reweighted message passing (TRW-S,
// V. Kolmogorov, PAMI 2006), with a price on memory at each time (Lagrangian relaxation).
#pragma once

#include <span>
#include <vector>

#include "random/splitmix64.h"
#include "sharding/instance.h"

namespace situate::sharding {

class Messages {
 public:
  Messages(const Instance& instance, uint64_t seed);

  // One pass forward, which chooses strategies, and one back, which gives the bound.
  void pass();
  // Raises prices where the chosen strategies use too much memory, and lowers them elsewhere.
  void step(double upper);

  double bound() const { return bound_; }
  double best_bound() const { return best_; }
  const std::vector<int>& chosen() const { return chosen_; }
  const std::vector<double>& prices() const { return price_; }
  const std::vector<double>& best_prices() const { return best_price_; }

 private:
  void reduced(int op);
  double send(int op, const Neighbour& n, int64_t number, double share);
  void choose(int op);
  void change_order();
  void order_ops();

  const Instance& instance_;
  // Message to the near end of each direction of an edge, from its far end.
  std::vector<int64_t> start_;
  std::vector<double> message_;
  std::vector<double> price_, best_price_, sum_;  // by time; sums of prices before each time
  std::vector<double> slope_;  // by time, bytes above the limit in limits, averaged over passes
  std::vector<double> share_;
  std::vector<double> theta_, part_;
  std::vector<int> chosen_;
  random::SplitMix64 random_;
  std::vector<int> order_, place_;  // of the ops in a pass
  double bound_, best_, best_before_, scale_;
  int stalls_ = 0;
};

}  // namespace situate::sharding
