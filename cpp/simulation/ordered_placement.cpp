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
// leave sooner or later; blocking transfers take place only just before their consumer.
int OrderedPlacement::first_effect_of_place(int unit) const {
  const Problem& p = problem();
  int first = p.n;
  for (const int op : p.members_of(unit)) {
    first = std::min(first, position_[op]);
    for (const int tensor : p.inputs_of(op))
      if (!p.blocking || p.signal[tensor]) first = std::min(first, position_[p.producer[tensor]]);
  }
  return first;
}

// A producer with several transfers sends first what is used first, so its transfers may swap.
int OrderedPlacement::first_effect_of_reorder(int from, int to) const {
  const Problem& p = problem();
  const int op = order_[to];
  int first = std::min(from, to);
  if (p.blocking) return first;
  for (const int tensor : p.inputs_of(op)) {
    const int producer = p.producer[tensor];
    if (device()[producer] != device()[op]) first = std::min(first, position_[producer]);
  }
  return first;
}

}  // namespace situate::sim
