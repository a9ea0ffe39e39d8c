// Whether memory can be left out of account.
#pragma once

#include "problem/problem.h"

namespace situate::search {

// Whether the device of the smallest capacity could hold all bytes of a step at once, so that every
// schedule fits.
bool fits_one_device(const problem::Problem& problem);

}  // namespace situate::search
