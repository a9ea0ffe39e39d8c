#include "search/items/placed_items.h"

#include <algorithm>

namespace situate::search {

using problem::Problem;

namespace {}  // namespace

PlacedItems::PlacedItems(const Problem& p, std::span<const int32_t> placement) {
  for (int op = 0; op < p.n; ++op) {
    Item item;
    item.op = op;
    item.source = item.target = placement[op];
    item.seconds = p.op_seconds(op, placement[op]);
    item.added = p.start_bytes[op];
    item.freed = p.workspace[op];
    items.push_back(item);
  }
  add_transfers(p, placement);
  too_many = items.size() > most_items;
  if (too_many) return;
  readers.resize(items.size());
  connect(p, placement);
  add_tails();
}

void PlacedItems::add_transfers(const Problem& p, std::span<const int32_t> placement) {
  std::vector<uint8_t> sent(p.d);
  for (int tensor = 0; tensor < p.m; ++tensor) {
    if (p.signal[tensor]) continue;
    std::fill(sent.begin(), sent.end(), 0);
    const int home = placement[p.producer[tensor]];
    for (const int consumer : p.consumers_of(tensor)) {
      const int target = placement[consumer];
      if (target == home || sent[target]++) continue;
      Item item;
      item.tensor = tensor;
      item.source = home;
      item.target = target;
      if (p.contention) item.channel = p.channel[static_cast<size_t>(home) * p.d + target];
      item.seconds = p.transfer_seconds(tensor, home, target);
      item.added = p.size[tensor];
      items.push_back(item);
    }
  }
}

void PlacedItems::connect(const Problem& p, std::span<const int32_t> placement) {
  for (int tensor = 0; tensor < p.m; ++tensor) {
    const int producer = p.producer[tensor], home = placement[producer];
    Items at_home = set_of(producer);
    for (const int consumer : p.consumers_of(tensor)) {
      const bool here = placement[consumer] == home;
      if (here) at_home |= set_of(consumer);
      if (here || p.signal[tensor]) follow(producer, consumer, here ? 0 : p.synchronisation);
    }
    for (int sent = p.n; sent < static_cast<int>(items.size()); ++sent) {
      if (items[sent].tensor != tensor) continue;
      follow(producer, sent, 0);
      at_home |= set_of(sent);
      Items there = set_of(sent);
      for (const int consumer : p.consumers_of(tensor)) {
        if (placement[consumer] != items[sent].target) continue;
        follow(sent, consumer, 0);
        there |= set_of(consumer);
      }
      add_copy(items[sent].target, p.size[tensor], false, there);
    }
    if (!p.resident[tensor]) add_copy(home, p.size[tensor], p.output[tensor], at_home);
  }
}

void PlacedItems::follow(int before, int after, double delay) {
  items[after].needs |= set_of(before);
  readers[before].push_back({after, delay});
}

void PlacedItems::add_copy(int device, int64_t size, bool stays, Items users) {
  if (size == 0 || stays) return;
  const auto index = static_cast<int32_t>(copies.size());
  copies.push_back({device, size, users});
  for (int item = 0; item < static_cast<int>(items.size()); ++item)
    if (users & set_of(item)) items[item].copies.push_back(index);
}

void PlacedItems::add_tails() {
  // As often as there are items: a path has no more of them.
  bool changed = true;
  for (auto& item : items) item.tail = item.seconds;
  while (changed) {
    changed = false;
    for (size_t i = 0; i < items.size(); ++i)
      for (const auto& [reader, delay] : readers[i]) {
        const double tail = items[i].seconds + delay + items[reader].tail;
        if (tail <= items[i].tail) continue;
        items[i].tail = tail;
        changed = true;
      }
  }
}

}  // namespace situate::search
