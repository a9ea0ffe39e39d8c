// REGAL's measure of memory (A. Paliwal et al., ICLR 2020, A.4): the bytes in use after every op
// and transfer, in the order in which the decoder took them.
#pragma once

#include <cstdint>
#include <vector>

#include "simulation/timeline.h"

namespace situate::sim {

class StepMemory {
 public:
  explicit StepMemory(const Problem& problem);

  // Raises `peak` (d), which holds the persistent bytes of every device, to the peaks of a
  // schedule.
  void raise(const int32_t* placement, const Timeline& timeline, int64_t* peak);

 private:
  // Of an item: it adds bytes on its target, and frees bytes on its source. An op has its device
  // twice.
  struct Step {
    int32_t source, target;
    int64_t added, freed;
  };
  // Of an item: its place in the decoder's order, and its source.
  struct Place {
    int32_t step, source;
  };

  void take_steps(const int32_t* placement, const Timeline& timeline);
  void free_after_last_use(const Timeline& timeline);

  const Problem& problem_;
  std::vector<int32_t> sized_;           // tensors with bytes
  std::vector<int32_t> with_workspace_;  // ops
  std::vector<Step> step_;
  std::vector<Place> place_;
  std::vector<int32_t> last_use_;  // d: of the tensor at hand; -1 for none
  std::vector<int64_t> used_;      // d
};

}  // namespace situate::sim
