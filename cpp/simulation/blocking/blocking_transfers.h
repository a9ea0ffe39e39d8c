// Where the transfers of an ordered placement go among its ops, where transfers are blocking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "problem/problem.h"
#include "simulation/blocking/early_transfers.h"
#include "simulation/ordered_placement.h"

namespace situate::sim {

using problem::Problem;

// The transfers but signals, in their order. A tensor is sent just before its first consumer on a
// device, or earlier, where its anchor is; or, if its transfer takes no time, as soon as its
// producer has ended and the two devices stop for another transfer: then it delays neither of them.
std::vector<PlacedTransfer> blocking_transfers(const OrderedPlacement& plan,
                                               const EarlyTransfers& early);

// Of every tensor: whether its transfers take no time, whatever the devices. Signals are none.
std::vector<uint8_t> instant_tensors(const Problem& problem);

// Pairs of devices, numbered without regard to their order.
inline size_t pairs_of(int devices) { return static_cast<size_t>(devices) * (devices - 1) / 2; }
inline size_t pair_of(int a, int b) {
  const size_t high = a > b ? a : b, low = a > b ? b : a;
  return high * (high - 1) / 2 + low;
}

}  // namespace situate::sim
