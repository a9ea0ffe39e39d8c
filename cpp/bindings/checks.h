// Checks of placements that come from Python.
#pragma once

#include <cstdint>
#include <span>

#include "problem/check.h"
#include "problem/problem.h"

namespace situate::bindings {

using problem::check;
using problem::Problem;

// Every entry of one or several placements is a device. All are looked at in any case, several at
// once, for almost always all are.
inline void check_devices(const Problem& p, std::span<const int32_t> placements) {
  int32_t outside = 0;
  for (const int32_t device : placements) outside |= (device < 0) | (device >= p.d);
  check(!outside, "a placement names a device that does not exist");
}

inline void check_placement(const Problem& p, std::span<const int32_t> placement) {
  check(placement.size() == static_cast<size_t>(p.n), "a placement has one entry an op");
  check_devices(p, placement);
}

// A search must start from valid placements: it never takes an op off a device where it may not
// run, or units apart.
inline void check_start(const Problem& p, std::span<const int32_t> placement) {
  check_placement(p, placement);
  for (int op = 0; op < p.n; ++op) {
    check(p.may_run(p.unit[op], placement[op]), "a placement puts an op where it may not run");
    check(placement[op] == placement[p.members_of(p.unit[op])[0]],
          "a placement puts ops of one unit on two devices");
  }
}

inline void check_decision(const Problem& p, std::span<const int32_t> placement,
                           std::span<const int32_t> order) {
  check_start(p, placement);
  problem::check_order(p, order);
}

}  // namespace situate::bindings
