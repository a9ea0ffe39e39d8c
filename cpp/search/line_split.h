// The best split of a line of units into one contiguous piece a device: dynamic programming over
// the line (J. Tarnawski et al., NeurIPS 2020, section 5, on one order of the units).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/load_state.h"

namespace situate::search {

class LineSplit {
 public:
  // `line` orders all units along the pipeline.
  LineSplit(LoadState& state, const int32_t* line);

  // Restarts the state from the split whose busiest device works as short as possible, or from the
  // best placement if no split fits. The devices take their pieces in the given order; a piece may
  // be empty. Pieces begin and end at multiples of `step` units.
  void split(const std::vector<int32_t>& devices, int step);
  // The loads of pieces have changed: ops hold other bytes, or devices have other room.
  void forget_pieces() { pieces_.clear(); }

 private:
  // Loads of a device's pieces: [i][j] is that of line[i * step, (i + 1 + j) * step).
  using Pieces = std::vector<std::vector<double>>;

  const Pieces& pieces_on(int device, size_t step);
  std::vector<double> pieces_from(size_t begin, size_t step, int device);
  int elsewhere(int device) const;
  bool same_loads(int a, int b) const;
  bool same_links(int a, int b) const;
  void cut(const std::vector<int32_t>& devices, const std::vector<std::vector<int32_t>>& begins,
           size_t step);

  LoadState& state_;
  const Problem& problem_;
  const std::vector<int32_t> line_;
  std::vector<Pieces> pieces_;  // of each device, empty where not known
  int step_ = 0;                // of the known pieces
};

}  // namespace situate::search
