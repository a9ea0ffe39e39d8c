// Rounds of bounds and search for a sharding problem. In each round two threads work side by side,
// and exchange what they have at its end, so that the result does not depend on their speed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sharding/branching/branching.h"
#include "sharding/forest_search.h"
#include "sharding/instance.h"
#include "sharding/relaxation.h"

namespace situate::sharding {

class Solver {
 public:
  Solver(const Arrays& arrays, uint64_t seed);

  // `stopped` ends the round early.
  void round(bool two_threads, const Stopped& stopped);

  const std::vector<int>& strategies() const { return best_; }
  double value() const { return value_; }
  int64_t excess() const { return excess_; }
  double bound() const;

 private:
  struct Decoding {
    std::vector<int> chosen;
    double value = 0, rank = 0;
    int64_t excess = 0;
  };

  void ascend(const Stopped& stopped);
  void search(const Stopped& stopped);
  void decode(const std::vector<int>& chosen, Decoding& best) const;
  void offer(const std::vector<int>& chosen, double value, int64_t excess);
  double upper() const;
  double cutoff() const;
  bool worth_branching(double cutoff) const;

  Instance instance_;
  Relaxation relaxation_;
  std::optional<Branching> branching_;
  ForestSearch search_;
  Decoding decoding_;
  std::vector<int> best_;
  double value_;
  int64_t excess_;
  int rounds_ = 0;
  int64_t work_ = 0;  // of the division in the round before
};

}  // namespace situate::sharding
