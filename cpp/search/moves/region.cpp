#include "search/moves/region.h"

#include "search/moves/draws.h"

namespace situate::search {

RegionMove::RegionMove(const sim::Placement& placement, const RegionOdds& odds, const Focus& focus)
    : placement_(placement), odds_(odds), focus_(focus), seen_in_(placement.problem().units, 0) {}

bool RegionMove::propose(SplitMix64& random) {
  change_.clear();
  const int seed = focus_.draw_movable(random);
  grow(random, seed, draw_device(random, seed));
  return true;
}

int RegionMove::draw_device(SplitMix64& random, int seed) {
  return draw_other_device(random, placement_, seed);
}

// Breadth first from the seed, over units on its device that may run on the new one, until the
// drawn size is reached.
void RegionMove::grow(SplitMix64& random, int seed, int device) {
  const Problem& p = placement_.problem();
  const int32_t* devices = placement_.device().data();
  const int here = placement_.device_of(seed);
  auto& region = change_.units;
  int bound = odds_.smallest;
  while (bound < largest_region_bound && odds_.doubling.drawn(random)) bound *= 2;
  const size_t size = odds_.smallest + static_cast<size_t>(random.below(bound));
  region.push_back({seed, here, device});
  seen_in_[seed] = ++now_;
  const auto visit = [&](int op) {
    const int unit = p.unit[op];
    if (seen_in_[unit] == now_ || devices[op] != here || region.size() >= size) return;
    if (!p.may_run(unit, device)) return;
    seen_in_[unit] = now_;
    region.push_back({unit, here, device});
  };
  const bool forwards = odds_.to_consumers.drawn(random);
  const bool backwards = (odds_.in_a_direction && !forwards) || odds_.to_producers.drawn(random);
  for (size_t i = 0; i < region.size() && region.size() < size; ++i)
    for (const int op : p.members_of(region[i].unit)) {
      if (backwards)
        for (const int tensor : p.inputs_of(op)) visit(p.producer[tensor]);
      if (forwards)
        for (const int tensor : p.outputs_of(op))
          for (const int consumer : p.consumers_of(tensor)) visit(consumer);
    }
}

int NeighbourRegionMove::draw_device(SplitMix64& random, int seed) {
  const int op = draw_member(random, placement_.problem(), seed);
  const int device = neighbours_device(random, seed, op);
  return device < 0 ? draw_other_device(random, placement_, seed) : device;
}

// The device of a producer or a consumer, other than the seed's own; -1 if none was drawn.
int NeighbourRegionMove::neighbours_device(SplitMix64& random, int seed, int op) {
  const Problem& p = placement_.problem();
  const auto& devices = placement_.device();
  const auto other = [&](int neighbour) {
    const int device = devices[neighbour];
    return device != devices[op] && p.may_run(seed, device) ? device : -1;
  };
  if (!past_producers.drawn(random)) {
    const auto tensors = own_output.drawn(random) ? p.outputs_of(op) : p.inputs_of(op);
    const int device = tensors.empty() ? -1 : other(p.producer[draw_of(random, tensors)]);
    if (device >= 0) return device;
  }
  if (past_consumers.drawn(random) || p.outputs_of(op).empty()) return -1;
  const auto consumers = p.consumers_of(draw_of(random, p.outputs_of(op)));
  return consumers.empty() ? -1 : other(draw_of(random, consumers));
}

}  // namespace situate::search
