// The transfers that ops of an ordered placement begin as they end, if transfers are overlapped.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulation/ordered_placement.h"

namespace situate::sim {

class Sends {
 public:
  // A tensor on its way to a device. `input` is that of one consumer there, see next_there().
  struct Send {
    int32_t first_use, tensor, target;
    int32_t input;
  };

  explicit Sends(const OrderedPlacement& plan);

  // The transfers of an op in the order in which it sends them, those needed first before others.
  // Valid until the next call.
  std::span<const Send> of(int op);
  // The input of another consumer that the transfer of this one is for, -1 behind the last.
  int next_there(int input) const { return next_there_[input]; }
  int reader(int input) const { return reader_[input]; }

 private:
  void add(int tensor, int device);

  const OrderedPlacement& plan_;
  std::vector<int32_t> reader_;      // of each input
  std::vector<int32_t> next_there_;  // of inputs
  std::vector<Send> sends_;
};

}  // namespace situate::sim
