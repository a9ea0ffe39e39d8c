// Units, ops and devices at random, as the moves draw them.
#pragma once

#include <cstdint>
#include <span>

#include "problem/problem.h"
#include "random/splitmix64.h"
#include "simulation/placement.h"

namespace situate::search {

using problem::Problem;
using random::SplitMix64;

// Any of the items, of which there must be one.
inline int draw_of(SplitMix64& random, std::span<const int32_t> items) {
  return items[random.below(static_cast<int>(items.size()))];
}

// One of the units that have a choice of device.
inline int draw_movable(SplitMix64& random, const Problem& problem) {
  return draw_of(random, problem.movable);
}

// Any of the ops of a unit.
inline int draw_member(SplitMix64& random, const Problem& problem, int unit) {
  return draw_of(random, problem.members_of(unit));
}

// A device on which the unit may run, other than its own; the unit must have a choice.
inline int draw_other_device(SplitMix64& random, const sim::Placement& placement, int unit) {
  const Problem& p = placement.problem();
  const int here = placement.device_of(unit);
  for (;;) {
    const int device = random.below(p.d);
    if (device != here && p.may_run(unit, device)) return device;
  }
}

}  // namespace situate::search
