// One option for each layer of a stage: the sum of seconds and the sum of bytes have limits. It is
// a knapsack with several choices (P. Sinha and A. Zoltners, Operations Research 27, 1979).
#pragma once

#include <span>
#include <vector>

namespace situate::sharding {

struct LayerOption {
  double seconds;
  double batch_bytes;  // for each micro-batch in flight
  double fixed_bytes;
};

class OptionChoice {
 public:
  enum class Answer { kNo, kYes, kUnknown };

  void clear();
  void add_option(const LayerOption& option) { options_.push_back(option); }
  // The options added since the last layer are those of a layer.
  void end_layer() { first_.push_back(static_cast<int>(options_.size())); }
  // Whether options exist that take at most so many seconds, and bytes with so many micro-batches.
  // Unknown where too many choices would have to be kept.
  Answer choose(double batches, double seconds, double bytes);
  // After yes: by layer, the number of its option.
  std::span<const int> options() const { return chosen_; }
  // The least bytes of all layers.
  double least_bytes(double batches) const;

 private:
  struct Sums {
    double seconds = 0;
    double bytes = 0;
  };
  // A choice for the first layers; `parent` is its beginning, in the level of one layer less.
  struct State {
    Sums sums;
    int parent;
    int option;
  };
  int layers() const { return static_cast<int>(first_.size()) - 1; }
  // Of each layer the option of least seconds + price * bytes, into `chosen_`.
  Sums cheapest(double seconds_price, double bytes_price);
  Answer enumerate(double price, double seconds, double bytes);
  void set_rests(double price);
  bool may_fit(const Sums& sums, int layer, double price, double seconds, double bytes) const;
  static void keep_best(std::vector<State>& states);
  static void keep_half(std::vector<State>& states);
  void trace_back();

  std::vector<int> first_{0};
  std::vector<LayerOption> options_;
  std::vector<double> bytes_;
  std::vector<int> chosen_;
  std::vector<double> rest_seconds_, rest_bytes_, rest_priced_;
  std::vector<std::vector<State>> levels_;
};

}  // namespace situate::sharding
