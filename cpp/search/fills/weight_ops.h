// Ops that no data reaches: parameters, buffers, constants, and what is computed from these alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.h"

namespace situate::search {

// For each op (n) whether no data reaches it. `enters` (n) marks ops by which data enters; only
// ops that read nothing count.
std::vector<uint8_t> without_data(const problem::Problem& problem, std::span<const uint8_t> enters);

// The place (n) at which each op is first needed, for ops at places (n) of an order. An op that no
// data reaches is needed at the least place of its readers, or never; all others at their own.
std::vector<double> first_use(const problem::Problem& problem,
                              std::span<const uint8_t> without_data, std::span<const double> place);

}  // namespace situate::search
