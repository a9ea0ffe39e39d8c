#include "simulation/ordered_placement.h"

#include <algorithm>

namespace situate::sim {

OrderedPlacement::OrderedPlacement(const Problem& problem, const int32_t* placement,
                                   const int32_t* order)
    : placement_(problem, placement), position_(problem.n) {
  assign(placement, order);
}

void OrderedPlacement::assign(const int32_t* placement, const int32_t* order) {
  placement_.assign(placement);
  order_.assign(order, order + problem().n);
  for (int i = 0; i < problem().n; ++i) position_[order_[i]] = i;
}

void OrderedPlacement::reorder(int from, int to) {
  const int op = order_[from];
  const int step = from < to ? 1 : -1;
  for (int i = from; i != to; i += step) {
    order_[i] = order_[i + step];
    position_[order_[i]] = i;
  }
  order_[to] = op;
  position_[op] = to;
}

// Producers of the unit's inputs send to another device now, and other transfers of theirs may
// leave sooner or later; blocking transfers take place only just before their consumer. Consumers
// of its outputs wait for other transfers, and those of its inputs may use them first or last now.
void OrderedPlacement::include_place(int unit, bool uses, Effect& effect) const {
  const Problem& p = problem();
  for (const int op : p.members_of(unit)) {
    effect.include(position_[op]);
    for (const int tensor : p.outputs_of(op)) include_consumers(tensor, effect);
    for (const int tensor : p.inputs_of(op)) {
      if (uses) include_consumers(tensor, effect);
      if (!p.blocking || p.signal[tensor]) effect.include(position_[p.producer[tensor]]);
    }
  }
}

void OrderedPlacement::include_consumers(int tensor, Effect& effect) const {
  for (const int consumer : problem().consumers_of(tensor))
    effect.last = std::max(effect.last, position_[consumer]);
}

// A producer with several transfers sends first what is used first, so its transfers may swap.
void OrderedPlacement::include_reorder(int from, int to, Effect& effect) const {
  const Problem& p = problem();
  const int op = order_[to];
  effect.include(from);
  effect.include(to);
  if (p.blocking) return;
  for (const int tensor : p.inputs_of(op)) {
    const int producer = p.producer[tensor];
    if (device()[producer] != device()[op]) effect.include(position_[producer]);
  }
}

}  // namespace situate::sim
