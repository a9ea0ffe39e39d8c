// A move of units that belong together: those of a module of the network, or of a group that
// exchanges many bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "search/moves/move.h"
#include "simulation/placement.h"

namespace situate::search {

// Block i has `units[start[i]]` up to `units[start[i + 1]]`. A block is as likely drawn as it is
// often in `turns`.
struct Blocks {
  std::vector<int32_t> start{0}, units, turns;
  int every = 20;  // one step in so many moves a block

  std::span<const int32_t> draw(SplitMix64& random) const {
    const int i = turns[random.below(static_cast<int>(turns.size()))];
    return {units.data() + start[i], units.data() + start[i + 1]};
  }
};

class BlockMove : public Move {
 public:
  explicit BlockMove(const sim::Placement& placement) : placement_(placement) {}

  // The blocks to draw from, which chains of annealing share.
  void use(std::shared_ptr<const Blocks> blocks) { blocks_ = std::move(blocks); }
  // Whether this step is one of a block.
  bool is_due(SplitMix64& random) const {
    return supports(placement_.problem()) && random.below(blocks_->every) == 0;
  }
  bool supports(const Problem&) const override { return blocks_ && !blocks_->turns.empty(); }
  bool propose(SplitMix64& random) override;

 private:
  const sim::Placement& placement_;
  std::shared_ptr<const Blocks> blocks_;
};

}  // namespace situate::search
