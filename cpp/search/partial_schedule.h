// The schedule that list rules build op by op, with an estimate of the memory in use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.h"
#include "search/list_rules.h"
#include "simulation/blocking/blocking_transfers.h"

namespace situate::search {

// An op is placed on a device behind the ops that are there; a channel sends one tensor after the
// other. Sources without work (parameters, inputs) are deferred until their first consumer is
// placed, and go to its device where they may.
class PartialSchedule {
 public:
  // `room` is the share of every device's memory that may be used.
  PartialSchedule(const Problem& problem, double room);

  bool is_deferred(int op) const;
  bool placed(int op) const { return placed_[op]; }
  double device_free(int device) const { return free_[device]; }
  bool may_run(int op, int device) const {
    const int fixed = device_of_unit_[p_.unit[op]];
    return fixed >= 0 ? fixed == device : p_.may_run(p_.unit[op], device);
  }
  // When all inputs of the op could be on the device if nothing else were sent before them; with
  // blocking transfers, when the op could start.
  double inputs_arrive(int op, int device) const;
  // When the last of its inputs that are placed is made.
  double inputs_end(int op) const;
  // Bytes in use on the device.
  int64_t used(int device) const { return used_[device]; }
  // Bytes that the device lacks for the op.
  int64_t shortage(int op, int device) const;
  // Both for each device: when all inputs of the op could be there, and the bytes that it lacks.
  void look_at_all(int op, std::span<double> arrive, std::span<int64_t> lacking) const;
  // The device of the op's unit; -1 if no op of the unit is placed.
  int device_of(int op) const { return device_of_unit_[p_.unit[op]]; }

  void place(int op, int device);
  Listed listed() &&;

 private:
  bool has_consumers(int op) const;
  void look_at_input(int tensor, std::span<double> arrive, std::span<int64_t> needs) const;
  int64_t needs_anywhere(int op) const;
  double send_time(int tensor, int source, int device) const;
  double receive(int tensor, int device);
  bool goes_along(int tensor, int device) const;
  double meet(int tensor, int device, std::vector<double>& free) const;
  void place_source(int op, int wanted);
  void enter(int op, int device, double start);
  void release(int tensor);
  bool counts_tensors() const { return p_.memory != problem::Memory::persistent; }
  double& arrival(int tensor, int device) {
    return arrival_[static_cast<size_t>(tensor) * p_.d + device];
  }
  double arrival(int tensor, int device) const {
    return arrival_[static_cast<size_t>(tensor) * p_.d + device];
  }

  const Problem& p_;
  std::vector<int64_t> room_;            // bytes of every device
  std::vector<int32_t> device_of_unit_;  // -1 before the unit's first op is placed
  std::vector<double> finish_;
  std::vector<uint8_t> placed_;
  std::vector<double> free_, channel_free_;
  mutable std::vector<double> trial_;  // blocking: free_ after transfers that are tried
  std::vector<uint8_t> instant_;       // blocking: of every tensor
  std::vector<int32_t> place_;         // in order_, of placed ops
  std::vector<int32_t> met_;           // blocking: ops placed when each pair of devices last met
  std::vector<double> arrival_;        // tensors x devices, NaN where it was not sent
  std::vector<int64_t> used_;
  std::vector<int32_t> waiting_;  // consumers of each tensor that are not placed
  std::vector<int64_t> held_;     // persistent bytes of a unit
  std::vector<int32_t> order_;
};

}  // namespace situate::search
