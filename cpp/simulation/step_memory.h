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
  // Of an item: it adds its bytes on its target. An op has its device twice.
  struct Use {
    int32_t source, target;
    int64_t bytes;
  };

  void describe(const int32_t* placement, const Timeline& timeline);
  void line_up(const std::vector<int32_t>& items);
  void free_after_last_use(const int32_t* placement, const Timeline& timeline);
  int64_t peak_of(int device, int64_t persistent) const;

  const Problem& problem_;
  std::vector<int32_t> sized_;           // tensors with bytes
  std::vector<int32_t> with_workspace_;  // ops
  std::vector<Use> use_;                 // of every item
  // Every device's items in their order, one device after the other. A transfer stands in the lines
  // of both its devices.
  std::vector<int32_t> line_, line_start_;
  std::vector<int32_t> place_;     // in its source's line, of every item
  std::vector<int32_t> last_use_;  // d: of the tensor at hand, in each line; -1 for none
  std::vector<int64_t> freed_;     // bytes that go after each place
};

}  // namespace situate::sim
