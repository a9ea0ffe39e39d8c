// List scheduling: HEFT (Topcuoglu et al., IEEE TPDS 13(3), 2002) and ETF (Hwang et al., SIAM J.
// Computing 18(2), 1989), for links with contention, colocation groups and finite memory.
#pragma once

#include <span>
#include <vector>

#include "problem/problem.h"
#include "search/deadline.h"

namespace situate::search {

using problem::Problem;

struct Listed {
  std::vector<int32_t> placement;
  std::vector<int32_t> order;  // in which the ops were placed; topological
  std::vector<double> end;     // seconds at which each op is expected to end
};

// HEFT, Eq. 8: an op's mean seconds plus the longest path to the end behind it, with transfers at
// their mean seconds.
std::vector<double> upward_rank(const Problem& problem);

// Both rules fill at most the share `room` of every device's memory, as far as they can foresee it:
// a device that lacks bytes is taken only where all devices do. They throw OutOfTime after the
// deadline.

// Heterogeneous earliest finish time: ops by upward rank, each on the device where it ends first.
Listed heft(const Problem& problem, double room, Deadline deadline);

// The same by any rank (n): of the ops whose producers are placed, the highest goes first.
Listed heft(const Problem& problem, double room, std::span<const double> rank,
            Deadline deadline = Deadline());

// Earliest time first: of all ready ops and devices, the pair that can start first; ties go to the
// higher rank.
Listed etf(const Problem& problem, double room, Deadline deadline);

}  // namespace situate::search
