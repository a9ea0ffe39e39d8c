// A placement and a linear order of all ops, and the moves that change them and take it back.
#pragma once

#include <span>
#include <vector>

#include "problem/problem.h"
#include "random/splitmix64.h"

namespace situate::search {

using problem::Problem;
using random::SplitMix64;

// Units that may move together: block i has `units[start[i]]` up to `units[start[i + 1]]`. A block
// is as likely drawn as it is often in `turns`.
struct Blocks {
  std::vector<int32_t> start{0}, units, turns;
  int every = 20;  // one move in so many concerns a block

  std::span<const int32_t> draw(SplitMix64& random) const {
    const int i = turns[random.below(static_cast<int>(turns.size()))];
    return {units.data() + start[i], units.data() + start[i + 1]};
  }
};

class LinearDecision {
 public:
  LinearDecision(const Problem& problem, const int32_t* placement, const int32_t* order);

  // Changes something at random. Returns the first position of the order at which a schedule may
  // differ, or -1 if the move turned out to change nothing.
  int propose(SplitMix64& random, const Blocks& blocks);
  void undo();

  const std::vector<int32_t>& device() const { return device_; }
  const std::vector<int32_t>& order() const { return order_; }
  int position(int op) const { return position_[op]; }

 private:
  struct Moved {
    int32_t unit, from;
  };

  int move_unit(int unit, int device);
  int move_region(SplitMix64& random);
  int move_block(SplitMix64& random, const Blocks& blocks);
  int swap_neighbours(SplitMix64& random);
  int shift(SplitMix64& random, int op);
  void rotate(int from, int to);
  void place(int unit, int device);
  int first_effect_of_place(int unit) const;
  int first_effect_of_order(int op, int position) const;
  int other_device(SplitMix64& random, int unit) const;

  const Problem& problem_;
  std::vector<int32_t> device_, order_, position_;
  std::vector<Moved> moved_;
  int shifted_from_ = -1, shifted_to_ = -1;
  std::vector<int32_t> region_;
  std::vector<uint32_t> stamp_;
  uint32_t stamp_now_ = 0;        // may wrap around
  std::vector<int32_t> movable_;  // units with a choice of device
};

}  // namespace situate::search
