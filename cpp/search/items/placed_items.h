// The ops and transfers of one placement, where transfers are blocking.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "problem/problem.h"

namespace situate::search {

// At most so many items fit the sets of this file.
constexpr int most_items = 64;

using Items = uint64_t;  // a set: bit i stands for item i

inline constexpr Items set_of(int item) { return Items{1} << item; }

// An op (tensor -1), or a transfer to `target`. An op has its device twice.
struct Item {
  int32_t op = -1, tensor = -1;
  int32_t source = 0, target = 0, channel = -1;  // -1: it waits for no channel
  double seconds = 0;
  double tail = 0;              // seconds of the longest path that begins with it
  Items needs = 0;              // items that it follows
  int64_t added = 0;            // bytes on its target while it runs
  int64_t freed = 0;            // of these, a workspace
  std::vector<int32_t> copies;  // of those that it makes or reads
};

// A reader of an item's result, and how long after the item's end it may start.
struct Reader {
  int32_t item;
  double delay;
};

// A tensor on a device: it goes when all its users have been taken.
struct TensorCopy {
  int32_t device;
  int64_t size;
  Items users;
};

struct PlacedItems {
  PlacedItems(const problem::Problem& problem, std::span<const int32_t> placement);

  bool too_many = false;    // more than `most_items`; nothing else is known then
  std::vector<Item> items;  // ops first
  std::vector<std::vector<Reader>> readers;
  std::vector<TensorCopy> copies;

 private:
  void add_transfers(const problem::Problem& p, std::span<const int32_t> placement);
  void connect(const problem::Problem& p, std::span<const int32_t> placement);
  void follow(int before, int after, double delay);
  void add_copy(int device, int64_t size, bool stays, Items users);
  void add_tails();
};

}  // namespace situate::search
