// A local search for sharding problems: the ops of a random forest in the graph choose anew, all
// others stay. The forest's best strategies come from dynamic programming.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "random/splitmix64.h"
#include "sharding/instance.h"
#include "sharding/loads.h"
#include "sharding/stopped.h"

namespace situate::sharding {

class ForestSearch {
 public:
  ForestSearch(const Instance& instance, std::span<const int> start, uint64_t seed);

  // Prices of memory by time, which the moves weigh against costs.
  void set_prices(std::span<const double> price);
  // Begins again from strategies.
  void restart(std::span<const int> start);
  // Moves of random sizes, until they have looked at so many ops, or are stopped. A move is kept if
  // it needs less memory above the limit, or no more and costs no more.
  void run(int64_t ops, const Stopped& stopped);

  // The strategies now, and the bytes above the limit at their peak.
  const std::vector<int>& chosen() const { return chosen_; }
  double value() const { return value_; }
  // Ops with a choice.
  int choices() const { return static_cast<int>(free_.size()); }
  int64_t excess() const { return std::max<int64_t>(0, loads_.most() - instance_.limit()); }

 private:
  struct Branch {
    int op, parent;      // parent's place in the forest, -1 for a root
    const double* rows;  // (strategies of the parent, strategies of the op)
    int64_t start;       // of the op's strategies in value_
    int64_t choice;      // of the parent's strategies in choice_
  };

  // A price of memory at a time, on top of the dual's, for one move.
  struct Surcharge {
    int time;
    double price;
  };

  struct Held {
    int op, strategy;  // the strategy before the move
  };

  void move(int size);
  void gather(int size);
  int moment(int op);
  int alive(int time);
  void select();
  void root();
  void weigh(double share);
  void solve();
  double change() const;
  void apply(bool back);
  void hold();
  void set(int op, int strategy);
  enum class Outcome { kKept, kDear, kLarge };
  Outcome attempt(double share, double value, int64_t above);
  double price_at(int time) const;
  int find(int op);

  const Instance& instance_;
  random::SplitMix64 random_;
  std::vector<int> chosen_;
  double value_ = 0;
  Loads loads_;
  std::vector<double> price_sum_;
  std::vector<int> free_;  // ops with a choice

  // The number of the move, with which its marks are made: an op is in the region, in the forest,
  // in a rooted tree. `tree_` is the union of trees.
  int64_t mark_ = 0;
  std::vector<int64_t> in_region_, in_forest_, in_tree_, stamp_;
  int64_t stamps_ = 0;
  std::vector<int> tree_, region_, next_;
  std::vector<Held> held_;
  std::vector<Surcharge> surcharges_;
  int peak_ = 0;  // time of most memory in the last trial that needed too much
  std::vector<Branch> forest_;
  std::vector<double> value_of_;
  std::vector<int> choice_;
};

}  // namespace situate::sharding
