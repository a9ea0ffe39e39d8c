// A problem whose step runs backwards.
#pragma once

#include "problem/problem.h"

namespace situate::problem {

// Every op waits for those that consume what it makes, over the same links in the other direction;
// a tensor becomes one for each of its consumers. Devices have no limit on memory.
Problem reversed(const Problem& problem);

}  // namespace situate::problem
