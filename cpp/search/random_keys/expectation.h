// What the chromosomes of a search agree on, as a policy that guides another one reads it
// (A. Paliwal et al., REGAL, ICLR 2020, A.2).
#pragma once

#include <cstdint>
#include <vector>

#include "search/random_keys/brkga.h"

namespace situate::search {

struct Expectation {
  std::vector<float> share;  // n x d: of the chromosomes that put an op on a device
  std::vector<float> place;  // n: mean place of an op in the order, from 0 to 1
};

// Of the members of the last complete generation; even shares and the middle before there is one.
Expectation expectation(const Brkga& brkga);

}  // namespace situate::search
