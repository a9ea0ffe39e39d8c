// A set of ranks from which the first is taken: a tree of bits, 64 a word.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace situate::sim {

// For ranks below 64^Levels. No operation has a branch, and a local queue has its root in a
// register: a chain of reads that wait for writes would otherwise take most of the time.
template <int Levels>
class RankQueue {
 public:
  // An empty queue for ranks below `count`, whose bits are in `room` while it lives.
  RankQueue(size_t count, std::vector<uint64_t>& room) {
    size_t total = 0;
    for (auto& first : first_) {
      first = total;
      count = (count + 63) / 64;
      total += count;
    }
    room.assign(total, 0);
    bits_ = room.data();
  }
  bool empty() const { return root_ == 0; }
  // Inserts the rank if `condition`.
  void insert(uint32_t rank, bool condition = true) {
    const auto bit = static_cast<uint64_t>(condition);
    for (const size_t first : first_) {
      bits_[first + (rank >> 6)] |= bit << (rank & 63);
      rank >>= 6;
    }
    root_ |= bit << (rank & 63);
  }
  // The first rank; all bits set where there is none.
  uint32_t first() const { return empty() ? ~uint32_t{0} : descend(); }
  // Takes out the first rank, which there must be.
  uint32_t pop() {
    const uint32_t rank = descend();
    uint64_t emptied = 1;
    uint32_t place = rank;
    for (const size_t first : first_) {
      uint64_t& word = bits_[first + (place >> 6)];
      word &= ~(emptied << (place & 63));
      emptied = word == 0;
      place >>= 6;
    }
    root_ &= ~(emptied << (place & 63));
    return rank;
  }

 private:
  uint32_t descend() const {
    uint32_t rank = first_bit(root_);
    for (int level = Levels - 2; level >= 0; --level)
      rank = rank << 6 | first_bit(bits_[first_[level] + rank]);
    return rank;
  }
  // Of a word that is not zero, which takes a processor fewer instructions to look at.
  static uint32_t first_bit(uint64_t word) {
#if defined(__GNUC__)
    if (word == 0) __builtin_unreachable();
#endif
    return static_cast<uint32_t>(std::countr_zero(word));
  }

  uint64_t* bits_;
  std::array<size_t, Levels - 1> first_{};  // word of each level below the root, the leaves first
  uint64_t root_ = 0;
};

}  // namespace situate::sim
