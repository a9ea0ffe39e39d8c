// The makespan under the rules of dnn-partitioning (J. Tarnawski et al., NeurIPS 2020), by which a
// device runs all its ops as one call.
#pragma once

#include <vector>

#include "problem/problem.h"

namespace situate::sim {

using problem::Problem;

// Times in seconds. A device that pays for its transfers runs one call; a device that does not runs
// its ops one by one, any number at once.
struct Calls {
  double makespan = 0;              // infinite if calls wait for one another in a circle
  std::vector<double> begin, load;  // d: when a call begins, and how long it takes
  std::vector<double> op_end;       // n: when an op's results can leave its device
};

Calls run_calls(const Problem& problem, const int32_t* placement);

}  // namespace situate::sim
