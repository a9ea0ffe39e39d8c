// Moves of a connected region of units: units that communicate a lot cannot leave a device one by
// one without paying for it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/moves/focus.h"
#include "search/moves/move.h"
#include "search/moves/odds.h"
#include "simulation/placement.h"

namespace situate::search {

class RegionMove : public Move {
 public:
  RegionMove(const sim::Placement& placement, const RegionOdds& odds, const Focus& focus);
  bool propose(SplitMix64& random) override;

 protected:
  // Draws the device that the region of a unit goes to.
  virtual int draw_device(SplitMix64& random, int seed);

  const sim::Placement& placement_;

 private:
  void grow(SplitMix64& random, int seed, int device);

  const RegionOdds odds_;
  const Focus& focus_;
  std::vector<uint32_t> seen_in_;  // of each unit: the last region that it was seen in
  uint32_t now_ = 0;               // may wrap around
};

// A region that goes to where a neighbour is.
class NeighbourRegionMove : public RegionMove {
 public:
  using RegionMove::RegionMove;

 protected:
  int draw_device(SplitMix64& random, int seed) override;

 private:
  int neighbours_device(SplitMix64& random, int seed, int op);
};

}  // namespace situate::search
