// A move that sends a tensor earlier or later than before, where transfers are blocking.
#pragma once

#include <vector>

#include "search/moves/move.h"
#include "simulation/blocking/early_transfers.h"
#include "simulation/ordered_placement.h"

namespace situate::search {

// A transfer that takes time gets any place between its producer and its first consumer.
class ResendMove : public Move {
 public:
  ResendMove(const sim::OrderedPlacement& plan, const sim::EarlyTransfers& early);
  bool supports(const Problem&) const override { return !readers_.empty(); }
  bool propose(SplitMix64& random) override;

 private:
  struct Reader {
    int32_t tensor, op;
  };

  const sim::OrderedPlacement& plan_;
  const sim::EarlyTransfers& early_;
  std::vector<Reader> readers_;  // of tensors whose transfers take time
};

}  // namespace situate::search
