// The items that decoders of blocking transfers put in order: every op, and a transfer of every
// tensor to each other device that reads it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulation/priority_order.h"
#include "simulation/timeline.h"

namespace situate::sim {

class BlockingItems {
 public:
  // A consumer of an op's or a transfer's tensors. A signal reaches it wherever it is, another
  // tensor only on the item's target.
  struct Reader {
    uint32_t signal : 1, op : 31;
  };

  explicit BlockingItems(const Problem& problem);

  // Adds the decision's transfers to the timeline, which must have none, and ranks all items but
  // signals: by priority, then an op before a transfer, then by index, then by target.
  void collect(const Decision& decision, Timeline& timeline);

  int count() const { return count_; }
  const PriorityOrder& order() const { return order_; }

  std::span<const Reader> readers_of_op(int op) const { return of_op_.row(op); }
  std::span<const Reader> readers_of_tensor(int tensor) const { return of_tensor_.row(tensor); }
  // The transfers of what an op makes: from first_of(op) to first_of(op + 1).
  int32_t first_of(int op) const { return first_[op]; }
  // Signals of an op that take time. Their transfers are no items: they occupy nothing.
  std::span<const int32_t> timed_signals_of(int op) const { return timed_.row(op); }

 private:
  template <class Item>
  struct Rows {
    void close() { start.push_back(static_cast<int32_t>(items.size())); }
    std::span<const Item> row(int i) const {
      return {items.data() + start[i], items.data() + start[i + 1]};
    }
    std::vector<int32_t> start{0};
    std::vector<Item> items;
  };

  void add_transfers(int tensor, const Decision& decision, Timeline& timeline);
  void number_items(const Timeline& timeline);

  const Problem& problem_;
  Rows<Reader> of_op_, of_tensor_;
  Rows<int32_t> sent_by_;  // tensors of every op that are no signals and have consumers
  Rows<int32_t> timed_;
  bool in_order_ = true;  // whether later ops have later tensors
  int count_ = 0;
  std::vector<int32_t> first_;   // n + 1
  std::vector<float> best_;      // d: of a tensor's consumers on each device
  std::vector<float> priority_;  // of every item
  std::vector<int32_t> sequence_;
  PriorityOrder order_;
};

}  // namespace situate::sim
