// The chromosome of REGAL (A. Paliwal et al., ICLR 2020, A.5): random keys in [0, 1] that stand for
// a placement and priorities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "problem/problem.h"
#include "simulation/timeline.h"

namespace situate::search {

using problem::Problem;

// n x d affinities of ops to devices, n priorities of ops, then a priority for every tensor that
// may be sent and every device.
class RandomKeys {
 public:
  explicit RandomKeys(const Problem& problem);

  // Of a chromosome. An array of keys needs `room()`, for decoders name the priorities of signals
  // as well, which they do not obey.
  size_t count() const { return count_; }
  size_t room() const { return of_transfers() + static_cast<size_t>(problem_.m) * problem_.d; }

  // Every unit goes to the device, of those it may run on, that the first of its ops has the
  // largest affinity to; of equal ones to the first. Writes `placement` (n), which the decision
  // refers to.
  sim::Decision decode(const float* keys, int32_t* placement) const;
  // Makes keys stand for a placement (n) and an order (n): affinities are exchanged so that the
  // device has the largest, and priorities are replaced, those of transfers by their most urgent
  // consumer's.
  void encode(const int32_t* placement, const int32_t* order, float* keys) const;

 private:
  size_t of_ops() const { return static_cast<size_t>(problem_.n) * problem_.d; }
  size_t of_transfers() const { return of_ops() + problem_.n; }

  const Problem& problem_;
  size_t count_;
  std::vector<float> barred_;  // units x d: added to a key, nothing or so much that no key is less
};

}  // namespace situate::search
