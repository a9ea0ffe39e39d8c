// Stages of a pipeline, each on replicas of several devices, within a limit of seconds (J.
// Tarnawski et al., Piper: Multidimensional Planner for DNN Parallelization, NeurIPS 2021).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sharding/option_choice.h"

namespace situate::sharding {

// Layers, each with options for each degree of tensor parallelism. A downset holds all successors
// of its layers; the stages of a pipeline, from the last to the first, are differences of downsets.
struct Layers {
  int64_t layers, devices, most_replicas;
  double memory;        // bytes of a device
  double sync_seconds;  // for each byte of weights, in endlessly many replicas
  std::span<const int64_t> tensor_degrees, data_degrees;  // ascending
  std::span<const int64_t> first;                         // options before each degree and layer
  std::span<const double> seconds, weight, batch_bytes, fixed_bytes;  // of each option
  std::span<const int64_t> incident, neighbour;  // neighbours before each layer, and the layers
  std::span<const int64_t> exchange;             // numbers in exchange_seconds before each option
  std::span<const double> exchange_seconds;      // with each neighbour of the option's layer
  std::span<const uint8_t> downsets;             // a row for each, by size: first none, last all
};

struct Stage {
  int downset, rest;         // its layers are those of the first downset that are not in the other
  int tensor, data;          // degrees of parallelism
  std::vector<int> options;  // of its layers
};

class StageDivision {
 public:
  enum class Outcome { kDivided, kImpossible, kUnknown, kStopped };

  explicit StageDivision(const Layers& layers);

  // Looks for stages of which none takes longer, the first one first. Unknown: none are known, but
  // some may exist.
  Outcome divide(double seconds, const std::function<bool()>& stopped);
  const std::vector<Stage>& stages() const { return stages_; }

 private:
  // A kind of stage: its degrees, and the most micro-batches in flight on a replica of it.
  struct Degrees {
    int64_t tensor, data, batches;
    // The most replicas of later stages.
    int64_t followers;
  };
  // True to see no more kinds.
  using Visit = std::function<bool(const Degrees&)>;

  bool within(int inner, int outer) const;
  int64_t least_devices(double work, double seconds) const;
  void find_members(int downset, int rest);
  bool set_layers(int downset, int rest, int tensor);
  bool in_stage(int layer, int downset, int rest) const;
  bool may_take(int64_t data, double seconds) const;
  void set_replicas(int64_t data);
  int64_t fitting_batches() const;
  int64_t most_batches(int64_t least, int64_t most, double seconds);
  void fill(int downset, int rest, double seconds);
  void each_stage(int downset, int rest, double seconds, bool all, const Visit& visit);
  int* row(int downset) { return &replicas_[downset * (layers_.devices + 1)]; }
  void trace_back(double seconds);
  void set_options(Stage& stage, int64_t batches, int64_t most, double seconds);
  bool find_stage(int& downset, int64_t& devices, double seconds);

  Layers layers_;
  int downsets_;
  std::vector<uint64_t> words_;
  int words_of_each_;
  std::vector<double> work_;  // least device-seconds of each downset
  std::vector<double> layer_work_;
  std::vector<int> replicas_;  // by downset and devices, the least sum of data degrees
  // By downset, the fewest devices; more than there are if the other layers then lack some.
  std::vector<int64_t> fewest_;
  // The layers of a stage with one degree of tensor parallelism.
  std::vector<int> members_;
  std::vector<int> option_first_;
  std::vector<double> option_seconds_, option_weight_, option_batch_, option_fixed_;
  double least_seconds_, least_weight_;
  OptionChoice choice_;
  bool doubtful_ = false;
  std::vector<Stage> stages_;
};

}  // namespace situate::sharding
