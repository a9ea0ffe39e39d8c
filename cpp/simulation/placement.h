// The device of every op. All ops of a colocation unit are on one device and move together.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/problem.h"

namespace situate::sim {

using problem::Problem;

class Placement {
 public:
  // `device` has n entries, see assign().
  Placement(const Problem& problem, const int32_t* device) : problem_(problem) { assign(device); }

  void assign(const int32_t* device) { device_.assign(device, device + problem_.n); }
  void place(int unit, int device) {
    for (const int op : problem_.members_of(unit)) device_[op] = device;
  }
  const Problem& problem() const { return problem_; }
  const std::vector<int32_t>& device() const { return device_; }
  int device_of(int unit) const { return device_[problem_.members_of(unit)[0]]; }

 private:
  const Problem& problem_;
  std::vector<int32_t> device_;
};

}  // namespace situate::sim
