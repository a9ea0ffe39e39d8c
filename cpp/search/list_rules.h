// List scheduling: HEFT (Topcuoglu et al., IEEE TPDS 13(3), 2002) and ETF (Hwang et al., SIAM J.
// Computing 18(2), 1989), for links with contention, colocation groups and finite memory.
#pragma once

#include <vector>

#include "problem/problem.h"

namespace situate::search {

using problem::Problem;

struct Listed {
  std::vector<int32_t> placement;
  std::vector<int32_t> order;  // in which the ops were placed; topological
};

// HEFT, Eq. 8: mean seconds of an op plus the longest way on, transfers at their mean.
std::vector<double> upward_rank(const Problem& problem);

// Both rules fill at most the share `room` of every device's memory, as far as they can foresee it.

// By upward rank, each op where it ends first.
Listed heft(const Problem& problem, double room);

// Of all ready ops and devices the pair that can start first; ties go to the higher rank.
Listed etf(const Problem& problem, double room);

}  // namespace situate::search
