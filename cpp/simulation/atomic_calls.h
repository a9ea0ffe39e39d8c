// dnn-partitioning's rules (Tarnawski et al., NeurIPS 2020): a device runs all its ops as one call.
#pragma once

#include <vector>

#include "problem/problem.h"

namespace situate::sim {

using problem::Problem;

// When each device's call starts and how long it takes; devices that pay for no transfers run their
// ops one by one, any number at once.
struct Calls {
  double makespan = 0;  // infinite if calls wait for one another
  std::vector<double> begin, load;
  std::vector<double> op_end;  // n: when an op's results can leave its device
};

Calls run_calls(const Problem& problem, const int32_t* placement);

}  // namespace situate::sim
