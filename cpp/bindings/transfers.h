// Transfers in the order of a plan as arrays: tensor (k,), target device (k,) and place (k,).
#pragma once

#include <nanobind/stl/tuple.h>

#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/checks.h"
#include "simulation/blocking/early_transfers.h"

namespace situate::bindings {

using TransferArrays = std::tuple<Array<int32_t, 1>, Array<int32_t, 1>, Array<int32_t, 1>>;

inline auto arrays_of(const std::vector<sim::PlacedTransfer>& transfers) {
  std::vector<int32_t> tensor, target, place;
  for (const auto& transfer : transfers) {
    tensor.push_back(transfer.tensor);
    target.push_back(transfer.target);
    place.push_back(transfer.place);
  }
  const size_t k = tensor.size();
  return std::make_tuple(to_numpy(std::move(tensor), {k}), to_numpy(std::move(target), {k}),
                         to_numpy(std::move(place), {k}));
}

constexpr auto places_where_blocking = "transfers have places only where they are blocking";

inline std::vector<sim::PlacedTransfer> transfers_of(const Problem& p, const TransferArrays& of) {
  const auto& [tensor, target, place] = of;
  check(tensor.size() == target.size() && tensor.size() == place.size(),
        "each transfer has a tensor, a target and a place");
  check(p.blocking || tensor.size() == 0, places_where_blocking);
  std::vector<sim::PlacedTransfer> transfers;
  for (size_t k = 0; k < tensor.size(); ++k) {
    const sim::PlacedTransfer sent{tensor.data()[k], target.data()[k], place.data()[k]};
    check(0 <= sent.tensor && sent.tensor < p.m && 0 <= sent.target && sent.target < p.d &&
              0 <= sent.place && sent.place <= p.n,
          "a transfer names a tensor, a device or a place that does not exist");
    transfers.push_back(sent);
  }
  return transfers;
}

}  // namespace situate::bindings
