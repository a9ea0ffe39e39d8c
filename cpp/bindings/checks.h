// Checks of placements that come from Python.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "problem/check.h"
#include "problem/problem.h"

namespace situate::bindings {

using problem::check;
using problem::Problem;

// Every entry of one or several placements is a device.
inline void check_devices(const Problem& p, std::span<const int32_t> placements) {
  check(std::all_of(placements.begin(), placements.end(),
                    [&](int32_t device) { return device >= 0 && device < p.d; }),
        "a placement names a device that does not exist");
}

inline void check_placement(const Problem& p, std::span<const int32_t> placement) {
  check(placement.size() == static_cast<size_t>(p.n), "a placement has one entry an op");
  check_devices(p, placement);
}

}  // namespace situate::bindings
