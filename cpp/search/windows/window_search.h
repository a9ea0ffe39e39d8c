// Local search in a long plan window by window, from its beginning to its end, with overlapped
// transfers. See WindowTimer: a move costs the ops of a window at most.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "random/splitmix64.h"
#include "search/moves/focus.h"
#include "search/moves/neighbourhood.h"
#include "search/windows/window_state.h"

namespace situate::search {

class WindowSearch {
 public:
  // `room` (d) are the bytes that each device has left for ops.
  WindowSearch(const Problem& problem, uint64_t seed, const int32_t* placement,
               const int32_t* order, std::span<const int64_t> room);

  // Goes on to the end of the plan, where the next sweep begins; not so far if `ended`, which is
  // called before each window, returns true. In each window, so many moves are tried for each of
  // its ops.
  void run(double moves_an_op, const std::function<bool()>& ended);

  // The longest way in seconds through the window; the makespan if that is the longest of all.
  double cost() const { return state_.cost(); }
  const sim::OrderedPlacement& plan() const { return state_.plan(); }
  const Problem& problem() const { return plan().problem(); }
  int64_t evaluations() const { return evaluations_; }
  // Share of the sweep that is over.
  double swept() const;

 private:
  void search_window(double moves_an_op);
  std::span<const int32_t> ops_of_window() const;

  WindowState state_;
  Focus focus_;
  Neighbourhood moves_;
  SplitMix64 random_;
  int64_t evaluations_ = 0;
};

}  // namespace situate::search
