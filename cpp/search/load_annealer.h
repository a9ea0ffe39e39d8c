// Annealing of the period: the busy time of the busiest device or channel in steady pipelined
// operation. Only the placement matters, and a move changes it by the tensors it touches.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "problem/problem.h"
#include "random/splitmix64.h"

namespace situate::search {

using problem::Problem;
using random::SplitMix64;

class LoadAnnealer {
 public:
  // `line` orders all units along the pipeline.
  LoadAnnealer(const Problem& problem, uint64_t seed, const int32_t* placement,
               const int32_t* line);

  void run(double temperature, int64_t evaluations, const std::function<bool()>& ended);
  void restart(const int32_t* placement);
  // From now on ops hold so many bytes and devices have so much room; the best is sought anew.
  void weigh(const int64_t* held, const int64_t* capacity);
  // Splits the line into one contiguous piece a device so that the busiest device works as short as
  // possible (dynamic programming over the line; Tarnawski et al., section 5, on one order). The
  // devices take their pieces in the given order. Pieces begin and end at multiples of `step`.
  void split(const std::vector<int32_t>& devices, int step);
  double period() const;
  const std::vector<int32_t>& best() const { return best_; }
  double best_period() const { return best_period_; }
  bool best_fits() const { return best_fits_; }
  int64_t evaluations() const { return evaluations_; }
  const Problem& problem() const { return problem_; }

 private:
  struct Moved {
    int32_t unit, from;
  };

  void weigh_units();
  void count_all();
  void keep_if_best();
  const std::vector<std::vector<double>>& pieces_on(int device, size_t step);
  std::vector<double> pieces_from(size_t begin, size_t step, int device);
  int elsewhere(int device) const;
  bool same_kind(int a, int b) const;
  bool same_links(int a, int b) const;
  void cut(const std::vector<int32_t>& devices, const std::vector<std::vector<int32_t>>& begins,
           size_t step);
  void move(int unit, int device);
  void undo();
  void propose();
  bool trade();
  int other_device(int unit);
  void add_tensor(int tensor, double sign);
  double cost() const;
  bool fits() const;

  const Problem& problem_;
  SplitMix64 random_;
  std::vector<int32_t> device_, best_;
  std::vector<int32_t> consumers_on_;  // tensors x devices
  std::vector<double> load_;           // devices, then channels
  std::vector<int64_t> bytes_;         // that ops hold: persistent ones, unless weighed
  std::vector<int64_t> capacity_;      // of devices
  std::vector<int64_t> held_;          // bytes on devices
  std::vector<int64_t> held_by_unit_;
  std::vector<int32_t> movable_, block_;
  std::vector<uint32_t> stamp_, tensor_stamp_;
  std::vector<int32_t> line_;
  std::vector<std::vector<std::vector<double>>>
      pieces_;        // of each device: loads of line[i * step_, (i + 1 + j) * step_)
  int step_ = 0;      // that a piece is a multiple of
  uint32_t now_ = 0;  // may wrap around
  std::vector<int32_t> touched_;
  std::vector<Moved> moved_, undone_;
  double cost_ = 0, best_period_ = 0;
  bool best_fits_ = false;
  int64_t evaluations_ = 0;
};

}  // namespace situate::search
