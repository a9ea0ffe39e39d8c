// Longest paths to and from every op on every device, where each op on the way chooses its own
// device; docs/bounds.md.
#pragma once

#include <vector>

#include "problem/problem.h"

namespace situate::bounds {

struct Paths {
  std::vector<double> head, tail;  // n x d, infinite where an op may not run
};

// Where transfers are `free`, every op on the way runs where it ends first, groups aside.
Paths longest_paths(const problem::Problem& problem, bool free);

}  // namespace situate::bounds
