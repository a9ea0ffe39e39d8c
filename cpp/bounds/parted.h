// Paths over edges whose ops are on two devices; docs/bounds.md.
#pragma once

#include <vector>

#include "bounds/paths.h"
#include "problem/problem.h"

namespace situate::bounds {

// Of each of `consumers` the longest path over the edge to it, its ops on the two devices where
// that is shortest; infinite where they have to share one.
std::vector<double> parted(const problem::Problem& problem, const Paths& paths);

}  // namespace situate::bounds
