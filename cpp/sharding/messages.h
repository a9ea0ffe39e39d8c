// Lower bounds of a sharding problem by sequential tree-reweighted message passing (TRW-S,
// V. Kolmogorov, PAMI 2006), with a price on memory at each time (Lagrangian relaxation).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "random/splitmix64.h"
#include "sharding/instance.h"

namespace situate::sharding {

// The messages of an instance, and its prices.
struct Dual {
  std::vector<double> message, price;
};

class Messages {
 public:
  Messages(const Instance& instance, uint64_t seed);
  // Begins at a dual of the instance, which is near the best, with short steps.
  Messages(const Instance& instance, Dual dual);

  // Goes on where those of an instance with more strategies are; `keep` has this one's.
  Messages(const Instance& instance, const Messages& whole, std::span<const uint8_t> keep);

  // One pass forward, which chooses strategies, and one back, which gives the bound. Plans of a
  // strategy cost at least the bound and its reduced cost: strategies for which this is above
  // `cutoff` are marked.
  void pass(double cutoff = std::numeric_limits<double>::infinity());
  // Raises prices where the chosen strategies use too much memory, and lowers them elsewhere.
  void step(double upper);

  double bound() const { return bound_; }
  double best_bound() const { return best_; }
  const std::vector<int>& chosen() const { return chosen_; }
  const std::vector<double>& prices() const { return price_; }
  const std::vector<double>& best_prices() const { return best_price_; }
  // By strategy over all ops, its cost above the least of its op, in the last pass back.
  const std::vector<double>& reduced_costs() const { return reduced_cost_; }
  // By strategy over all ops, 0 for those that a cutoff excludes, and their number.
  const std::vector<uint8_t>& keep() const { return keep_; }
  int64_t excluded() const { return excluded_; }
  // Times that steps of every length left the bound as it was.
  int standstills() const { return standstills_; }
  // Those of the best bound, for the instance of the strategies in `keep`.
  Dual dual(std::span<const uint8_t> keep) const;

 private:
  void start_messages();
  std::vector<double> gather(std::span<const double> messages, std::span<const uint8_t> keep) const;
  void reduced(int op);
  double forward();
  double backward(double floor, double cutoff);
  double take_least(int op);
  void exclude(int op, double most);
  void shorten_steps();
  double send(int op, const Neighbour& n, int64_t number, double share);
  void choose(int op);
  void change_order();
  void order_ops();

  const Instance& instance_;
  // Message to the near end of each direction of an edge, from its far end, now and at the best
  // bound.
  std::vector<int64_t> start_;
  std::vector<double> message_, best_message_;
  std::vector<double> price_, best_price_, sum_;  // by time; sums of prices before each time
  std::vector<double> slope_;  // by time, bytes above the limit in limits, averaged over passes
  std::vector<double> share_;
  std::vector<double> theta_, part_, reduced_cost_;
  std::vector<uint8_t> keep_;
  int64_t excluded_ = 0;
  std::vector<int> chosen_;
  random::SplitMix64 random_;
  std::vector<int> order_, place_;  // of the ops in a pass
  double bound_, best_, best_before_, scale_;
  int patience_, stalls_ = 0, standstills_ = 0;
};

}  // namespace situate::sharding
