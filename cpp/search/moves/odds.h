// How often the searches draw each move, and what moves draw: every probability of the moves.
#pragma once

#include "random/splitmix64.h"

namespace situate::search {

// A probability of `share` in `of`.
struct Odds {
  int share, of;

  bool drawn(random::SplitMix64& random) const { return random.below(of) >= of - share; }
};

// How a connected region of units is drawn. It has `smallest` units and fewer than the size bound
// more, each number as likely. The bound is doubled from `smallest` as often as `doubling` says, so
// that large regions are rare and possible.
struct RegionOdds {
  int smallest;
  Odds doubling;
  Odds to_consumers, to_producers;  // whether the region grows in either direction
  bool in_a_direction;              // to producers at any rate where it does not grow to consumers
};
constexpr int largest_region_bound = 256;

// Annealing of placement and order: of 100 steps that are no block move; and beside them, where
// transfers are blocking and take time, so many that send one elsewhere in the order.
struct AnnealingShares {
  int reorder, reassign, region, nearby_swap, reassign_and_reorder;
  int resend = 10;
};
constexpr AnnealingShares of_many_ops{40, 20, 15, 10, 15};
// In a small graph regions lead out of plans that no move of single ops makes better. Where
// transfers block, a region that changes devices stops all of them anew.
constexpr int few_ops = 500;
constexpr AnnealingShares of_few_ops{20, 10, 60, 4, 6};
constexpr AnnealingShares of_few_ops_blocking{30, 20, 0, 20, 30};
constexpr RegionOdds annealing_region{.smallest = 2,
                                      .doubling = {2, 3},
                                      .to_consumers = {3, 4},
                                      .to_producers = {3, 4},
                                      .in_a_direction = false};

// Where it is known which ops are in the way of a better plan, what a move of single ops or of a
// region begins with is one of them.
constexpr Odds in_focus{2, 3};

// A block move takes all units of the block rather than those on one device.
constexpr Odds whole_block{1, 2};

// Positions of the order: how far apart the ops of a nearby swap are at most, and how far an op is
// moved at most where it has more than twice that room. A long jump is seldom better than a short
// one.
constexpr int nearby = 16;
constexpr int longest_jump = 32;

// Annealing of loads: of 8 steps.
struct LoadShares {
  static constexpr int swap = 1;
  static constexpr int region = 7;
};
constexpr RegionOdds load_region{.smallest = 1,
                                 .doubling = {1, 2},
                                 .to_consumers = {1, 2},
                                 .to_producers = {1, 2},
                                 .in_a_direction = true};

// Where a region goes in annealing of loads: to a neighbour's device, unless both of these are
// drawn or the neighbours that are drawn name no other device; then to any other device.
constexpr Odds past_producers{2, 10};
constexpr Odds past_consumers{2, 10};
// Of the draws that look at producers, those that look at an output's, which is the op itself and
// names no other device.
constexpr Odds own_output{1, 2};

// Moves in a window of a long plan: of 100 steps.
struct WindowShares {
  int reorder, region, nearby_swap;
};
constexpr WindowShares in_window{40, 45, 15};

}  // namespace situate::search
