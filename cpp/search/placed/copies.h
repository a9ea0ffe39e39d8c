// The copies of tensors that a placement makes, and the ops that use each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.h"

namespace situate::search {

using problem::Problem;

// A tensor that takes memory on a device: at home, or where it is sent.
struct Copy {
  int32_t tensor, device;
  int32_t first_use, last_use;  // of Copies::users
  bool stays;                   // to the end of the step
};

// Ops without inputs and work whose tensors are read on their own device only are *late*: they run
// just before the first op that reads them, so that what they make takes no memory before.
class Copies {
 public:
  // `turns` is a topological order of all ops.
  Copies(const Problem& problem, std::span<const int32_t> device, std::span<const int32_t> turns);

  std::span<const Copy> all() const { return copies_; }
  const Copy& operator[](int copy) const { return copies_[copy]; }
  int64_t bytes(int copy) const { return problem_.size[copies_[copy].tensor]; }
  bool at_home(int copy) const {
    return copies_[copy].device == device_[problem_.producer[copies_[copy].tensor]];
  }
  // Copies of a tensor, and of one that an op reads where it runs; -1 where that takes no memory.
  int first_of(int tensor) const { return first_[tensor]; }
  int end_of(int tensor) const { return first_[tensor + 1]; }
  int read_as(int input) const { return read_as_[input]; }
  // Ops that read a copy on its device, in their turns.
  std::span<const int32_t> users(int copy) const {
    return {users_.data() + copies_[copy].first_use, users_.data() + copies_[copy].last_use};
  }
  bool late(int op) const { return late_[op]; }
  std::span<const int32_t> turns() const { return turns_; }
  int device(int op) const { return device_[op]; }
  const Problem& problem() const { return problem_; }

 private:
  bool is_late(int op) const;
  void add(int tensor);
  int copy_on(int tensor, int device) const;
  void list_users();

  const Problem& problem_;
  std::span<const int32_t> device_, turns_;
  std::vector<Copy> copies_;
  std::vector<int32_t> first_;    // m + 1
  std::vector<int32_t> read_as_;  // of Problem::inputs
  std::vector<int32_t> users_;
  std::vector<uint8_t> late_;
};

}  // namespace situate::search
