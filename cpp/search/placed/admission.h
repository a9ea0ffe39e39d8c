// Admission of ops out of turn: which op may start now, so that all others can still run within the
// devices' memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "search/placed/copies.h"
#include "search/placed/range_maximum.h"

namespace situate::search {

// The banker's algorithm (A. N. Habermann, *Prevention of system deadlocks*, CACM 12(7), 1969) with
// one way out: the ops that have not started, one after the other in their turns. A state is safe
// if they fit so. Each device has a row of the ops that use its memory, in that order, with the
// bytes in use there while each of them runs, were they run so. An op that starts out of turn takes
// its bytes before them all, and lets go of what no later op reads.
class Admission {
 public:
  // Where ops do not fit even in their turns, devices have room for what that takes.
  explicit Admission(const Copies& copies);

  // Bytes that the turns take beyond the capacities, as shares of them.
  double excess() const { return excess_; }
  // Leaves so many bytes of each device free, as far as the turns allow.
  void reserve(std::span<const int64_t> bytes);
  // Whether an op may start; it has started then.
  bool admit(int op);
  // Starts an op whatever it takes.
  void start(int op);
  void end(int op);
  // A tensor has been sent to one more device.
  void arrive(int tensor);
  bool started(int op) const { return started_[op]; }
  // The op that started last, behind the late ones that began with it.
  std::span<const int32_t> begun() const { return begun_; }

 private:
  static constexpr int now = -1;  // in place of a range of a row: the bytes in use
  struct Change {
    int32_t device, first, last;
    int64_t bytes;
  };
  struct Shortened {
    int32_t copy, users;
  };

  void number();
  void fill();
  void count_holders(int copy);
  void change(int device, int first, int last, int64_t bytes);
  void apply(const Change& change);
  void make(int op);
  void shorten(int copy);
  bool fits(int device) const;
  void revert();
  void release(int copy);

  const Copies& copies_;
  const Problem& p_;
  std::vector<int32_t> turn_;     // of each op, in its device's row
  std::vector<int32_t> begins_;   // of each copy, in the row of its device
  std::vector<int32_t> length_;   // of each row
  std::vector<int32_t> users_;    // of each copy: so many of the first hold those that wait for it
  std::vector<int32_t> holders_;  // of each copy: what must end before it is freed
  // Of each device: bytes in use, those that may be, and those that the turns take.
  std::vector<int64_t> used_, room_, needed_;
  std::vector<std::optional<RangeMaximum>> rows_;  // of devices that could be too small
  std::vector<uint8_t> started_;
  double excess_ = 0;
  // Of the op that started last.
  std::vector<Change> changes_;
  std::vector<Shortened> shortened_;
  std::vector<int32_t> begun_;
};

}  // namespace situate::search
