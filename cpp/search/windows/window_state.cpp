#include "search/windows/window_state.h"

#include <algorithm>
#include <utility>

#include "problem/sentinels.h"

namespace situate::search {

namespace {

// Positions from one window to the next; a window has twice as many. Twice this gains as much per
// move, and a move takes half as long again.
constexpr int step = 64;

// Members of a larger unit seldom stand in one window, and further readers of a tensor seldom tell
// more about where it arrives.
constexpr int most_members = 16, most_readers = 16;

}  // namespace

WindowState::WindowState(const Problem& problem, const int32_t* placement, const int32_t* order,
                         std::span<const int64_t> room)
    : plan_(problem, placement, order),
      timer_(problem, plan_, step),
      room_(room.begin(), room.end()),
      in_use_(problem.d, 1) {}

void WindowState::keep_to_devices_in_use() {
  std::fill(in_use_.begin(), in_use_.end(), 0);
  for (int i = timer_.first(); i < timer_.last(); ++i)
    in_use_[plan_.device()[plan_.order()[i]]] = 1;
}

void WindowState::apply(const Change& change) {
  admitted_ = admits(change);
  for (const auto& [unit, from, to] : change.units) place(unit, from, to);
  if (change.from >= 0) plan_.reorder(change.from, change.to);
  if (!admitted_) return;
  exchange_arrivals();
  effect_ = {plan_.problem().n, -1};
  for (const auto& moved : change.units) plan_.include_place(moved.unit, false, effect_);
  if (change.from >= 0) plan_.include_reorder(change.from, change.to, effect_);
}

void WindowState::undo(const Change& change) {
  if (admitted_) exchange_arrivals();
  if (change.from >= 0) plan_.reorder(change.to, change.from);
  for (const auto& [unit, from, to] : change.units) place(unit, to, from);
}

double WindowState::evaluate(double limit) {
  return admitted_ ? timer_.time(effect_, limit) : never;
}

// Whether all ops that change stand in the window, on devices with room.
bool WindowState::admits(const Change& change) {
  arrivals_.clear();
  if (change.to >= 0 && !(timer_.contains(change.from) && timer_.contains(change.to))) return false;
  return std::all_of(change.units.begin(), change.units.end(),
                     [&](const auto& moved) { return admits(moved.unit, moved.to); });
}

bool WindowState::admits(int unit, int device) {
  const auto members = plan_.problem().members_of(unit);
  if (!in_use_[device] || members.size() > most_members) return false;
  int64_t bytes = 0;
  for (const int op : members) {
    bytes += plan_.problem().persistent[op];
    if (!timer_.contains(plan_.position(op))) return false;
    receive(op, device);
  }
  return bytes <= room_[device];
}

// Notes when inputs from before the window come to another device of an op.
void WindowState::receive(int op, int device) {
  const Problem& p = plan_.problem();
  for (int input = p.input_start[op]; input < p.input_start[op + 1]; ++input) {
    const int tensor = p.inputs[input], producer = p.producer[tensor];
    if (plan_.position(producer) < timer_.first() && plan_.device()[producer] != device)
      arrivals_.push_back({input, arrival_on(tensor, device)});
  }
}

// When another reader there has the tensor, or else when it could.
double WindowState::arrival_on(int tensor, int device) {
  const Problem& p = plan_.problem();
  const int begin = p.consumer_start[tensor];
  const int end = std::min(p.consumer_start[tensor + 1], begin + most_readers);
  for (int i = begin; i < end; ++i)
    if (plan_.device()[p.consumers[i]] == device)
      return timer_.arrival_from_before(p.place_in_inputs[i]);
  return timer_.new_arrival(tensor, device);
}

void WindowState::place(int unit, int from, int to) {
  plan_.place(unit, to);
  for (const int op : plan_.problem().members_of(unit)) {
    room_[from] += plan_.problem().persistent[op];
    room_[to] -= plan_.problem().persistent[op];
  }
}

// Makes the new arrivals the timer's, and keeps the timer's to return to.
void WindowState::exchange_arrivals() {
  for (auto& [input, time] : arrivals_) std::swap(timer_.arrival_from_before(input), time);
}

}  // namespace situate::search
