// The fewest bytes that are live while an op runs, whatever the schedule; docs/bounds.md derives
// them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bounds/minimum_cut.h"
#include "bounds/rows.h"

namespace situate::bounds {

// What takes memory: m tensors that live from their producer's start to their last consumer's end,
// or as outputs to the end of the step, and the workspaces of n ops.
struct Held {
  std::span<const int64_t> size;       // m
  std::span<const int32_t> producer;   // m
  Rows consumers;                      // m
  std::span<const uint8_t> output;     // m
  std::span<const int64_t> workspace;  // n

  int tensors() const { return static_cast<int>(size.size()); }
};

class LeastLive {
 public:
  // n ops, each of `after` waiting for the one of `before` in the same place.
  LeastLive(int n, std::span<const int32_t> before, std::span<const int32_t> after);

  // Bytes that are live at once in every schedule, while one of the ops runs that `runs` counts.
  // `orders`: k x n topological ones, whose bytes say which op to begin with and when to stop.
  // Fewer where looking at `work` ops, tensors and edges, or so many seconds between two ops, is
  // not enough.
  int64_t least(const Held& held, std::span<const int32_t> orders, std::span<const uint8_t> runs,
                int64_t work, double seconds);

 private:
  enum class Side : uint8_t { free, ended, waits };

  std::vector<int64_t> in_order(const Held& held, std::span<const int32_t> order) const;
  int64_t least_during(const Held& held, int op, int64_t& work);
  void take_sides(int op);
  void spread(int op, Side side, const Rows& next);
  void add_dependencies();
  int64_t add_tensor(const Held& held, int tensor, int op);
  void add_freed(int from, int64_t size);

  const int n_;
  const Rows before_, after_;  // the ops next to each op
  std::vector<Side> side_;
  std::vector<int> node_, stack_, waiting_;
  MinimumCut cut_;
};

}  // namespace situate::bounds
