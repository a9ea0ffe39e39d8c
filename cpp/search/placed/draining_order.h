// An order of ops in which what was made first is read and gone first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.h"

namespace situate::search {

using problem::Problem;

// Of the tensors that take memory the oldest is next: all ops that read it run, each behind all
// that it waits for. Where there is none, the next op of a line, a topological order of all ops, is
// taken. So one slice of a batch comes to its end before another begins.
std::vector<int32_t> draining_order(const Problem& problem, std::span<const int32_t> line);

}  // namespace situate::search
