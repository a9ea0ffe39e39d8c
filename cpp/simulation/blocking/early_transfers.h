// Transfers that are sent earlier than their consumer needs them, where transfers are blocking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.h"
#include "simulation/ordered_placement.h"

namespace situate::sim {

// A transfer that is sent just before the op at `place` of the order.
struct PlacedTransfer {
  int32_t tensor, target, place;
};

// The op before which each such transfer is sent, its *anchor*. A transfer without one is sent just
// before its first consumer on its target; so is one whose tensor is not made before its anchor.
class EarlyTransfers {
 public:
  static constexpr int none = -1;
  static constexpr int most = 4;  // of one anchor

  struct Transfer {
    int32_t tensor, target;
  };
  struct Place {
    int32_t anchor = none, turn = 0;  // among the transfers of the anchor
  };

  explicit EarlyTransfers(const Problem& problem);

  // In the order in which they are sent.
  std::span<const Transfer> before(int op) const {
    return {transfers_.data() + static_cast<size_t>(op) * most, count_[op]};
  }
  int anchor_of(const Transfer& transfer) const { return anchor_[index(transfer)]; }
  Place place_of(const Transfer& transfer) const;
  bool full(int op) const { return count_[op] == most; }
  bool any() const { return total_ > 0; }

  // Gives a transfer another place, at an anchor that is not full.
  void move(const Transfer& transfer, const Place& to);
  // Takes over those of a plan's transfers that are early, as far as anchors have room.
  void assign(const OrderedPlacement& plan, std::span<const PlacedTransfer> transfers);

 private:
  size_t index(const Transfer& transfer) const {
    return static_cast<size_t>(transfer.tensor) * devices_ + transfer.target;
  }

  const int devices_;
  int total_ = 0;
  std::vector<uint8_t> count_;       // ops
  std::vector<Transfer> transfers_;  // ops x most
  std::vector<int32_t> anchor_;      // tensors x devices
};

// The position of the first op on the target that reads the tensor; the number of ops for none.
int first_consumer(const OrderedPlacement& plan, const EarlyTransfers::Transfer& transfer);

}  // namespace situate::sim
