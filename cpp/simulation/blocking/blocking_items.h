// The items that decoders of blocking transfers put in order: every op, and a transfer of every
// tensor to each other device that reads it. An item says whom it hands what it makes or brings.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulation/priority_order.h"
#include "simulation/timeline.h"

namespace situate::sim {

class BlockingItems {
 public:
  // An op or a transfer, so that decoders do the same with both: where keys are random a processor
  // guesses every other branch between the two wrong.
  struct Item {
    double seconds;
    int32_t source, target;             // an op's device twice
    int32_t first_reader, last_reader;  // in `readers()`
    int32_t channel;  // its place; without contention and for ops the source's own
    int32_t op;       // that waits for signals; the number of ops for a transfer
  };

  explicit BlockingItems(const Problem& problem);

  // Adds the decision's transfers to the timeline, which must have none, and ranks all items but
  // signals: by priority, then an op before a transfer, then by index, then by target.
  void collect(const Decision& decision, Timeline& timeline);

  int count() const { return count_; }
  const PriorityOrder& order() const { return order_; }

  const Item* items() const { return item_.data(); }
  // Of an op: consumers on its device, and its transfers. Of a transfer: consumers on its target.
  const int32_t* readers() const { return readers_.data(); }
  // Inputs of every op (n).
  const std::vector<int32_t>& needs() const { return needs_; }
  // Devices, channels, and a channel of its own for every device.
  size_t places() const { return 2 * static_cast<size_t>(problem_.d) + problem_.channels; }
  int channel(int source, int target) const;
  bool has_signals() const { return has_signals_; }
  // Whether any signal takes time.
  bool has_timed_signals() const { return !timed_.items.empty(); }
  // Consumers of an op's signals on other devices: from first_told(op) to first_told(op + 1). The
  // number of ops stands for a transfer, which tells nobody.
  const int32_t* told() const { return told_.data(); }
  int32_t first_told(int op) const { return first_told_[op]; }
  // Signals of an op that take time. Their transfers are no items: they occupy nothing.
  std::span<const int32_t> timed_signals_of(int op) const { return timed_.row(op); }

 private:
  struct Rows {
    void close() { start.push_back(static_cast<int32_t>(items.size())); }
    std::span<const int32_t> row(int i) const {
      return {items.data() + start[i], items.data() + start[i + 1]};
    }
    std::vector<int32_t> start{0};
    std::vector<int32_t> items;
  };
  struct Edge {
    int32_t consumer, tensor, producer;
    int32_t last;  // of its tensor's edges
    int32_t signal;
  };
  // Where the next reader of the op at hand, of a transfer, and of a signal is written.
  struct Cursor {
    int32_t beside, away, told;
  };

  void split(const Decision& decision, Timeline& timeline);
  template <bool Signals>
  void split_between_two(const Decision& decision, Timeline& timeline);
  // Where transfers' readers begin, behind those of ops: each edge makes one at most, for an op has
  // a reader elsewhere for every transfer.
  int32_t first_away() const { return static_cast<int32_t>(edges_.size()) + 1; }
  void send(int tensor, const Decision& decision, Timeline& timeline, Cursor& at);
  void tell(int tensor, const Decision& decision, Cursor& at);
  void signal_to_each(int tensor, const Decision& decision, Timeline& timeline);
  void group_by_target(std::span<int32_t> away, const Decision& decision);
  void find_targets(std::span<const int32_t> consumers, const Decision& decision);
  float urgency_of(int tensor, int target, float best, const Decision& decision) const;
  void number_items(const Timeline& timeline);
  void describe_ops(const Decision& decision);
  double seconds_of(const Transfer& transfer) const;
  void describe_transfers(const Timeline& timeline);

  const Problem& problem_;
  std::vector<Edge> edges_;        // by producer and tensor
  Rows made_;                      // tensors of every op that have consumers
  Rows timed_;                     // those that are signals and take time
  std::vector<int32_t> by_index_;  // places in `made_` of tensors but signals, by tensor
  bool in_order_ = true;           // whether these places rise
  int count_ = 0;
  bool has_signals_ = false;
  std::vector<int32_t> readers_, told_;
  std::vector<int32_t> needs_;
  std::vector<Item> item_;
  std::vector<int32_t> first_told_;  // n + 2
  std::vector<int32_t> first_sent_;  // of the tensor at each place of `made_`; and the end
  std::vector<int32_t> consumers_on_, targets_, grouped_;  // of the tensor at hand
  std::vector<float> priority_;                            // of every item
  std::vector<int32_t> sequence_;
  PriorityOrder order_;
};

}  // namespace situate::sim
