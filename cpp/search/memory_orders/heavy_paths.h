// Orders of ops along the heaviest paths of their graph.
#pragma once

#include <cstdint>
#include <vector>

#include "problem/problem.h"

namespace situate::search {

using problem::Problem;

enum class Direction { forwards, backwards };

// A topological order, depth first: of what an op waits for that comes first of which the heaviest
// path falls most, from its fullest moment to what is left of it. In a tree that is the best order
// in which parts do not take turns (J. W. H. Liu, ACM TOMS 12(3), 1986). Backwards it is found from
// the end of the step: of what waits for an op that comes last.
std::vector<int32_t> heavy_path_order(const Problem& problem, Direction direction);

}  // namespace situate::search
