// A placement problem as flat arrays: the ops, tensors and devices of docs/execution-model.md.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace situate::problem {

enum class Memory { time, step, persistent };

// The largest sum of all sizes, and the capacity of a device without a limit.
constexpr int64_t most_bytes = int64_t{1} << 62;

// Sums that count some bytes twice are cut off here, so that they cannot overflow.
inline int64_t add_bytes(int64_t a, int64_t b) { return b > most_bytes - a ? most_bytes : a + b; }

struct Problem {
  int n = 0;  // ops
  int m = 0;  // tensors
  int d = 0;  // devices
  bool blocking = false;
  bool contention = true;
  bool signals = true;  // tensors that are empty and have no own time occupy nothing
  bool atomic = false;  // a device runs all its ops as one call (dnn-partitioning)
  Memory memory = Memory::time;
  double synchronisation = 0;

  std::vector<double> seconds;            // n x d, infinite where an op cannot run
  std::vector<int64_t> size;              // m
  std::vector<int32_t> producer;          // m
  std::vector<int32_t> consumer_start;    // m + 1
  std::vector<int32_t> consumers;         // of tensor t: consumer_start[t] .. consumer_start[t + 1]
  std::vector<double> own_seconds;        // m, NaN where the links decide
  std::vector<uint8_t> resident, output;  // m
  std::vector<int64_t> persistent, workspace;  // n
  std::vector<int64_t> capacity;               // d
  std::vector<uint8_t> pays;                   // d, atomic: whether it pays for its transfers
  std::vector<double> latency, bandwidth;      // d x d
  std::vector<int32_t> channel;                // d x d, -1 on the diagonal
  std::vector<int32_t> order;                  // n, a topological order
  std::vector<int32_t> unit;                   // n, colocation group
  std::vector<uint8_t> allowed;                // units x d

  // Derived by derive().
  int channels = 0;  // shared media and ordered pairs
  int units = 0;
  std::vector<int32_t> output_start, outputs;  // tensors each op produces
  std::vector<int32_t> input_start, inputs;    // tensors each op consumes
  std::vector<int32_t> place_in_inputs;        // of each of `consumers`
  std::vector<int32_t> member_start, members;  // ops of each unit
  std::vector<int32_t> movable;                // units with a choice of device
  std::vector<uint8_t> signal;                 // m: size zero and no own time, if there are signals
  std::vector<int64_t> start_bytes;            // n: what an op's start takes on its device
  std::vector<int32_t> place_in_order;         // n: inverse of order

  // Throws std::invalid_argument where the arrays are no valid problem.
  void derive();

  double op_seconds(int op, int device) const {
    return seconds[static_cast<size_t>(op) * d + device];
  }
  double transfer_seconds(int tensor, int source, int target) const {
    const double own = own_seconds[tensor];
    if (own == own) return own + synchronisation;
    if (signal[tensor]) return synchronisation;
    const size_t pair = static_cast<size_t>(source) * d + target;
    return latency[pair] + static_cast<double>(size[tensor]) / bandwidth[pair] + synchronisation;
  }
  std::span<const int32_t> consumers_of(int tensor) const {
    return row(consumer_start, consumers, tensor);
  }
  std::span<const int32_t> outputs_of(int op) const { return row(output_start, outputs, op); }
  std::span<const int32_t> inputs_of(int op) const { return row(input_start, inputs, op); }
  std::span<const int32_t> members_of(int a_unit) const {
    return row(member_start, members, a_unit);
  }
  bool may_run(int a_unit, int device) const {
    return allowed[static_cast<size_t>(a_unit) * d + device];
  }

 private:
  void check_numbers() const;
  void check_indices() const;
  void check_units() const;
  void derive_units();
  void derive_inputs();
  void derive_bytes();

  static std::span<const int32_t> row(const std::vector<int32_t>& start,
                                      const std::vector<int32_t>& items, int i) {
    return {items.data() + start[i], items.data() + start[i + 1]};
  }
};

// Throw std::invalid_argument: bytes that are negative or more than `most_bytes` in all; an order
// that is not a topological one of all ops.
void check_bytes(std::initializer_list<std::span<const int64_t>> sizes);
void check_order(const Problem& problem, std::span<const int32_t> order);

}  // namespace situate::problem
