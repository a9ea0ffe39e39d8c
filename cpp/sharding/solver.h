// Rounds of bounds and search for a sharding problem. In each round two threads work side by side,
// and exchange what they have at its end, so that the result does not depend on their speed.
#pragma once

#include <cstdint>
#include <vector>

#include "sharding/forest_search.h"
#include "sharding/instance.h"
#include "sharding/messages.h"

namespace situate::sharding {

class Solver {
 public:
  Solver(const Arrays& arrays, uint64_t seed);

  void round(bool two_threads);

  const std::vector<int>& strategies() const { return best_; }
  double value() const { return value_; }
  int64_t excess() const { return excess_; }
  double bound() const { return messages_.best_bound(); }

 private:
  struct Decoding {
    std::vector<int> chosen;
    double value = 0, rank = 0;
    int64_t excess = 0;
  };

  void ascend();
  void search();
  void decode(Decoding& best);
  void offer(const std::vector<int>& chosen, double value, int64_t excess);
  double upper() const;

  Instance instance_;
  Messages messages_;
  ForestSearch search_;
  Decoding decoding_;
  std::vector<int> best_;
  double value_;
  int64_t excess_;
  int rounds_ = 0;
};

}  // namespace situate::sharding
