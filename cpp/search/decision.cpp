#include "search/decision.h"

#include <algorithm>

namespace situate::search {

LinearDecision::LinearDecision(const Problem& problem, const int32_t* placement,
                               const int32_t* order)
    : problem_(problem),
      device_(placement, placement + problem.n),
      order_(order, order + problem.n),
      position_(problem.n),
      stamp_(problem.units, 0) {
  for (int i = 0; i < problem.n; ++i) position_[order_[i]] = i;
  for (int unit = 0; unit < problem.units; ++unit) {
    int choices = 0;
    for (int device = 0; device < problem.d; ++device) choices += problem.may_run(unit, device);
    if (choices > 1) movable_.push_back(unit);
  }
}

int LinearDecision::propose(SplitMix64& random, const Blocks& blocks) {
  moved_.clear();
  shifted_from_ = shifted_to_ = -1;
  if (!blocks.turns.empty() && random.below(blocks.every) == 0) return move_block(random, blocks);
  const int kind = random.below(100);
  if (movable_.empty() || kind < 40) return shift(random, random.below(problem_.n));
  if (kind < 60) {
    const int unit = movable_[random.below(static_cast<int>(movable_.size()))];
    return move_unit(unit, other_device(random, unit));
  }
  if (kind < 75) return move_region(random);
  if (kind < 85) return swap_neighbours(random);
  const int unit = movable_[random.below(static_cast<int>(movable_.size()))];
  const auto members = problem_.members_of(unit);
  const int first = move_unit(unit, other_device(random, unit));
  const int shifted = shift(random, members[random.below(static_cast<int>(members.size()))]);
  return shifted < 0 ? first : std::min(first, shifted);
}

void LinearDecision::undo() {
  if (shifted_from_ >= 0) rotate(shifted_to_, shifted_from_);
  for (auto it = moved_.rbegin(); it != moved_.rend(); ++it)
    for (const int op : problem_.members_of(it->unit)) device_[op] = it->from;
}

int LinearDecision::other_device(SplitMix64& random, int unit) const {
  const int here = device_[problem_.members_of(unit)[0]];
  for (;;) {
    const int device = random.below(problem_.d);
    if (device != here && problem_.may_run(unit, device)) return device;
  }
}

void LinearDecision::place(int unit, int device) {
  const auto members = problem_.members_of(unit);
  moved_.push_back({unit, device_[members[0]]});
  for (const int op : members) device_[op] = device;
}

int LinearDecision::move_unit(int unit, int device) {
  place(unit, device);
  return first_effect_of_place(unit);
}

// A connected region of up to 2^k units on one device moves together: what communicates a lot
// cannot move one by one.
int LinearDecision::move_region(SplitMix64& random) {
  const int seed = movable_[random.below(static_cast<int>(movable_.size()))];
  const int device = other_device(random, seed);
  const int here = device_[problem_.members_of(seed)[0]];
  int most = 2;
  while (most < 256 && random.below(3) > 0) most *= 2;
  const size_t size = 2 + static_cast<size_t>(random.below(most));
  region_.assign(1, seed);
  stamp_[seed] = ++stamp_now_;
  const auto visit = [&](int op) {
    const int unit = problem_.unit[op];
    if (stamp_[unit] == stamp_now_ || device_[op] != here || region_.size() >= size) return;
    if (!problem_.may_run(unit, device)) return;
    stamp_[unit] = stamp_now_;
    region_.push_back(unit);
  };
  const bool forwards = random.below(4) > 0, backwards = random.below(4) > 0;
  for (size_t i = 0; i < region_.size() && region_.size() < size; ++i)
    for (const int op : problem_.members_of(region_[i])) {
      if (backwards)
        for (const int tensor : problem_.inputs_of(op)) visit(problem_.producer[tensor]);
      if (forwards)
        for (const int tensor : problem_.outputs_of(op))
          for (const int consumer : problem_.consumers_of(tensor)) visit(consumer);
    }
  int first = problem_.n;
  for (const int unit : region_) first = std::min(first, move_unit(unit, device));
  return first;
}

// All units of a block that are on one device, or all of them, move together.
int LinearDecision::move_block(SplitMix64& random, const Blocks& blocks) {
  const auto block = blocks.draw(random);
  const int seed = block[random.below(static_cast<int>(block.size()))];
  const int here = device_[problem_.members_of(seed)[0]];
  const int device = random.below(problem_.d);
  const bool all = random.below(2) > 0;
  if (device == here && !all) return -1;
  int first = problem_.n;
  for (const int unit : block) {
    const int now = device_[problem_.members_of(unit)[0]];
    if (now == device || (!all && now != here) || !problem_.may_run(unit, device)) continue;
    first = std::min(first, move_unit(unit, device));
  }
  return moved_.empty() ? -1 : first;
}

// Two ops close in the order trade devices.
int LinearDecision::swap_neighbours(SplitMix64& random) {
  const int unit = movable_[random.below(static_cast<int>(movable_.size()))];
  const auto members = problem_.members_of(unit);
  const int op = members[random.below(static_cast<int>(members.size()))];
  const int there = position_[op] + 1 + random.below(16);
  if (there >= problem_.n) return -1;
  const int other = problem_.unit[order_[there]];
  const int a = device_[op], b = device_[order_[there]];
  if (a == b || !problem_.may_run(unit, b) || !problem_.may_run(other, a)) return -1;
  const int first = move_unit(unit, b);
  return std::min(first, move_unit(other, a));
}

int LinearDecision::shift(SplitMix64& random, int op) {
  int low = -1, high = problem_.n;
  for (const int tensor : problem_.inputs_of(op))
    low = std::max(low, position_[problem_.producer[tensor]]);
  for (const int tensor : problem_.outputs_of(op))
    for (const int consumer : problem_.consumers_of(tensor))
      high = std::min(high, position_[consumer]);
  ++low;
  --high;
  const int from = position_[op];
  if (high - low > 64) {  // a long jump is seldom better than a short one
    low = std::max(low, from - 32);
    high = std::min(high, from + 32);
  }
  if (low >= high) return -1;
  int to = low + random.below(high - low);
  if (to >= from) ++to;
  rotate(from, to);
  shifted_from_ = from;
  shifted_to_ = to;
  return first_effect_of_order(op, std::min(from, to));
}

// The op at `from` goes to `to`; those between close up.
void LinearDecision::rotate(int from, int to) {
  const int op = order_[from];
  const int step = from < to ? 1 : -1;
  for (int i = from; i != to; i += step) {
    order_[i] = order_[i + step];
    position_[order_[i]] = i;
  }
  order_[to] = op;
  position_[op] = to;
}

// Producers of the inputs send elsewhere now; blocking transfers wait for the consumer.
int LinearDecision::first_effect_of_place(int unit) const {
  int first = problem_.n;
  for (const int op : problem_.members_of(unit)) {
    first = std::min(first, position_[op]);
    for (const int tensor : problem_.inputs_of(op))
      if (!problem_.blocking || problem_.signal[tensor])
        first = std::min(first, position_[problem_.producer[tensor]]);
  }
  return first;
}

// A producer with several transfers sends first what is wanted first.
int LinearDecision::first_effect_of_order(int op, int position) const {
  int first = position;
  if (problem_.blocking) return first;
  for (const int tensor : problem_.inputs_of(op)) {
    const int producer = problem_.producer[tensor];
    if (device_[producer] != device_[op]) first = std::min(first, position_[producer]);
  }
  return first;
}

}  // namespace situate::search
