// Where moves are drawn: anywhere, and part of the time where a plan can get better.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.h"
#include "random/splitmix64.h"

namespace situate::search {

using problem::Problem;
using random::SplitMix64;

class Focus {
 public:
  explicit Focus(const Problem& problem) : problem_(problem) {}

  // From now on draws are of these ops, and of their units, of which one must have a choice of
  // device, rather than of all.
  void within(std::span<const int32_t> ops);
  // From now on part of the draws are of these ops, and of their units.
  void on(std::vector<int32_t> ops);

  int draw_op(SplitMix64& random) const;
  // One of the units that have a choice of device.
  int draw_movable(SplitMix64& random) const;

 private:
  std::vector<int32_t> movable_of(std::span<const int32_t> ops) const;

  const Problem& problem_;
  std::vector<int32_t> all_ops_;  // none for those of the problem
  std::vector<int32_t> all_units_, ops_, units_;
};

}  // namespace situate::search
