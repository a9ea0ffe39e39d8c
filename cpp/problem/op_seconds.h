// The seconds of all ops, with one column for all devices on which every op takes as long: a table
// that caches hold where the problem's own, with a column for each device, exceeds them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "problem/problem.h"

namespace situate::problem {

class OpSeconds {
 public:
  explicit OpSeconds(const Problem& p) {
    std::vector<int32_t> first;  // device of each column
    for (int device = 0; device < p.d; ++device) {
      const auto alike = std::find_if(first.begin(), first.end(), [&](int other) {
        for (int op = 0; op < p.n; ++op)
          if (p.op_seconds(op, device) != p.op_seconds(op, other)) return false;
        return true;
      });
      column_.push_back(static_cast<int32_t>(alike - first.begin()));
      if (alike == first.end()) first.push_back(device);
    }
    columns_ = first.size();
    seconds_.reserve(columns_ * p.n);
    for (int op = 0; op < p.n; ++op)
      for (const int device : first) seconds_.push_back(p.op_seconds(op, device));
  }

  double of(int op, int device) const {
    return seconds_[static_cast<size_t>(op) * columns_ + column_[device]];
  }

 private:
  size_t columns_ = 0;
  std::vector<int32_t> column_;  // of each device
  std::vector<double> seconds_;  // ops x columns
};

}  // namespace situate::problem
