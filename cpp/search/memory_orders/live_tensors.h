// The bytes in use where all ops run on one device, one after the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.h"

namespace situate::search {

using problem::Problem;

class LiveTensors {
 public:
  explicit LiveTensors(const Problem& problem);

  const Problem& problem() const { return p_; }
  // Bytes of a tensor; none of a resident one, which its producer holds throughout.
  int64_t bytes(int tensor) const { return p_.resident[tensor] ? 0 : p_.size[tensor]; }
  // Bytes of all that an op makes, and of what of it is there when the op has ended.
  int64_t made(int op) const { return made_[op]; }
  int64_t left(int op) const { return left_[op]; }

  struct Use {
    std::vector<int64_t> during, after;  // n, by place in the order
    int fullest() const;                 // the first place at which most is in use
    int64_t peak() const { return during[fullest()]; }
  };
  // Bytes of tensors and workspaces in use in a topological order.
  Use use(std::span<const int32_t> order) const;

 private:
  const Problem& p_;
  std::vector<int64_t> made_, left_;  // n
};

}  // namespace situate::search
