// Justification (V. Valls, F. Ballestin, S. Quintanilla, Justification and RCPSP, EJOR 165(2),
// 2005): a plan is listed anew from its end in the order of its ends, and from its beginning in the
// order of those of that list, as long as it gets shorter. Orders are changed at random in between.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "problem/problem.h"
#include "random/splitmix64.h"
#include "simulation/simulator.h"

namespace situate::search {

using problem::Problem;
using random::SplitMix64;

class Justification {
 public:
  struct Plan {
    bool feasible = false;
    double cost = 0;  // seconds, with a penalty where it does not fit
    std::vector<int32_t> placement, order;
  };

  // `reversed` is the problem run backwards.
  Justification(const Problem& problem, std::shared_ptr<const Problem> reversed, uint64_t seed);

  // Lists up to so many plans; fewer if `ended`, which is called before each, returns true.
  void run(int64_t evaluations, const std::function<bool()>& ended);

  // Empty before any plan was listed.
  const Plan& best() const { return best_; }
  int64_t evaluations() const { return evaluations_; }

 private:
  struct Member {
    double cost;
    std::vector<double> rank;  // n, by which its plan is listed
  };

  bool spent() const { return evaluations_ >= limit_ || (*ended_)(); }
  std::vector<double> next_rank();
  void justify(std::vector<double> rank);
  double list(std::span<const double> rank);
  double seconds_of(const std::vector<int32_t>& placement, const std::vector<int32_t>& order);
  void keep(Member member);
  double noise();

  const Problem& problem_;
  const std::shared_ptr<const Problem> reversed_;
  const std::vector<double> upward_rank_;
  const bool always_fits_;
  sim::Simulator simulator_;
  SplitMix64 random_;
  std::vector<Member> members_;  // the best first, of equally good ones the latest
  std::vector<float> priority_;
  std::vector<int64_t> peak_;
  std::vector<double> end_;  // of each op in the plan listed last
  double room_ = 1;          // share of memory that lists fill
  Plan best_;
  int64_t evaluations_ = 0, limit_ = 0;
  const std::function<bool()>* ended_ = nullptr;
};

}  // namespace situate::search
