// Longer heads and tails where results meet: an op begins early only on the device of all ops whose
// results would come too late from another, and these run there one after the other;
// docs/bounds.md.
#pragma once

#include <cstdint>

#include "bounds/paths.h"
#include "problem/problem.h"

namespace situate::bounds {

// Paths that are no shorter, as far as they are found by looking at `work` edges, or in so many
// seconds.
Paths with_joins(const problem::Problem& problem, Paths paths, int64_t work, double seconds);

}  // namespace situate::bounds
