#include "search/placed/placed_list.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace situate::search {

namespace {

// Ops that were refused before and are looked at again when a device is free, those whose turn is
// first: the others behind them hardly fit.
constexpr size_t most_again = 8;

}  // namespace

PlacedList::PlacedList(const Copies& copies, Admission admission, Urgency urgency)
    : copies_(copies),
      p_(copies.problem()),
      admission_(std::move(admission)),
      turns_(copies.turns()),
      turn_(p_.n),
      rank_(p_.n),
      by_rank_(p_.n),
      needs_(p_.n, 0),
      ready_(p_.d),
      awaited_(find_awaited()),
      arriving_(p_.n, 0),
      arrival_(p_.n, 0),
      openings_(p_.d),
      busy_(p_.d, 0),
      channels_(p_.channels),
      patience_(urgency.patience) {
  rank(urgency);
  count_needs();
}

void PlacedList::rank(Urgency urgency) {
  const auto path = paths();
  std::vector<double> load(p_.d, 0), due(p_.n);
  for (int op = 0; op < p_.n; ++op)
    load[copies_.device(op)] += p_.op_seconds(op, copies_.device(op));
  const double all = std::accumulate(load.begin(), load.end(), 0.0);
  // The last turn comes when the busiest device has done its work.
  const double pace = all > 0 ? *std::max_element(load.begin(), load.end()) / all : 0;
  double turn = 0;
  for (const int op : turns_) {
    due[op] = urgency.turn * pace * turn - urgency.path * path[op];
    turn += p_.op_seconds(op, copies_.device(op));
  }
  std::copy(turns_.begin(), turns_.end(), by_rank_.begin());
  std::stable_sort(by_rank_.begin(), by_rank_.end(), [&](int a, int b) {
    return std::make_tuple(!awaited_[a], due[a]) < std::make_tuple(!awaited_[b], due[b]);
  });
  for (int place = 0; place < p_.n; ++place) {
    rank_[by_rank_[place]] = place;
    turn_[turns_[place]] = place;
  }
}

// Seconds from the start of each op to the end of the step, if nothing else were to do.
std::vector<double> PlacedList::paths() const {
  std::vector<double> path(p_.n, 0);
  for (auto turn = turns_.rbegin(); turn != turns_.rend(); ++turn) {
    const int op = *turn, here = copies_.device(op);
    for (const int tensor : p_.outputs_of(op))
      for (const int reader : p_.consumers_of(tensor)) {
        const int there = copies_.device(reader);
        const double sent = there == here ? 0 : p_.transfer_seconds(tensor, here, there);
        path[op] = std::max(path[op], sent + path[reader]);
      }
    path[op] += p_.op_seconds(op, here);
  }
  return path;
}

std::vector<uint8_t> PlacedList::find_awaited() const {
  std::vector<uint8_t> waited(p_.n, 0);
  for (auto turn = turns_.rbegin(); turn != turns_.rend(); ++turn)
    for (const int tensor : p_.outputs_of(*turn))
      for (const int reader : p_.consumers_of(tensor))
        waited[*turn] |= waited[reader] || copies_.device(reader) != copies_.device(*turn);
  return waited;
}

void PlacedList::count_needs() {
  for (int op = 0; op < p_.n; ++op)
    for (const int tensor : p_.inputs_of(op)) needs_[op] += !copies_.late(p_.producer[tensor]);
  for (int op = 0; op < p_.n; ++op)
    if (needs_[op] == 0 && !copies_.late(op)) open(op);
}

std::vector<int32_t> PlacedList::order() && {
  while (static_cast<int>(order_.size()) < p_.n) {
    for (int device = 0; device < p_.d; ++device)
      if (!busy_[device]) start_first(device);
    if (events_.empty()) force();
    now_ = events_.top().time;
    while (!events_.empty() && events_.top().time == now_) {
      const Event event = events_.top();
      events_.pop();
      end(event);
    }
  }
  return std::move(order_);
}

void PlacedList::start_first(int device) {
  auto& [fresh, refused] = ready_[device];
  again_.clear();
  for (; !refused.empty() && again_.size() < most_again; refused.pop())
    again_.push_back(rank_[turns_[refused.top()]]);
  std::sort(again_.begin(), again_.end(), std::greater<>());
  std::vector<int32_t> wait;
  while (!fresh.empty() || !again_.empty()) {
    const int op = take_first(fresh);
    if (waits(device, op)) {
      fresh.push(rank_[op]);
      break;
    }
    if (admission_.admit(op)) {
      start(op);
      break;
    }
    wait.push_back(turn_[op]);
  }
  for (const int32_t turn : wait) refused.push(turn);
  for (const int32_t rank : again_) refused.push(turn_[by_rank_[rank]]);
}

// Whether a device stays free because an awaited op opens before `op` would be worth its start.
bool PlacedList::waits(int device, int op) {
  if (patience_ <= 0 || awaited_[op]) return false;
  auto& openings = openings_[device];
  while (!openings.empty() && openings.top().time <= now_) openings.pop();
  return !openings.empty() && openings.top().time - now_ < patience_ * p_.op_seconds(op, device);
}

// Notes when the ops open whose last input is on its way.
void PlacedList::expect(const Event& arrival) {
  if (patience_ <= 0) return;
  for (const int reader : p_.consumers_of(arrival.tensor)) {
    if (copies_.device(reader) != arrival.target || !awaited_[reader]) continue;
    ++arriving_[reader];
    arrival_[reader] = std::max(arrival_[reader], arrival.time);
    note_opening(reader);
  }
}

void PlacedList::note_opening(int op) {
  if (arriving_[op] > 0 && arriving_[op] == needs_[op])
    openings_[copies_.device(op)].push({arrival_[op], op});
}

// The most urgent op of those that were never refused and those that are looked at again.
int PlacedList::take_first(Ranks& fresh) {
  int32_t rank;
  if (again_.empty() || (!fresh.empty() && fresh.top() < again_.back())) {
    rank = fresh.top();
    fresh.pop();
  } else {
    rank = again_.back();
    again_.pop_back();
  }
  return by_rank_[rank];
}

// An op that was admitted.
void PlacedList::start(int op) {
  const int here = copies_.device(op);
  for (const int producer : admission_.begun()) order_.push_back(producer);
  busy_[here] = 1;
  events_.push({now_ + p_.op_seconds(op, here), op, -1, -1});
}

// The op whose turn it is always fits once all others have ended; the most urgent ones did not.
void PlacedList::force() {
  while (admission_.started(turns_[first_]) || copies_.late(turns_[first_])) ++first_;
  const int op = turns_[first_];
  ready_[copies_.device(op)].refused.pop();
  admission_.start(op);
  start(op);
}

void PlacedList::end(const Event& event) {
  if (event.op < 0) {
    arrive(event.tensor, event.target);
    return;
  }
  busy_[copies_.device(event.op)] = 0;
  admission_.end(event.op);
  for (const int tensor : p_.outputs_of(event.op)) send(tensor);
}

// To all devices that read it.
void PlacedList::send(int tensor) {
  const int here = copies_.device(p_.producer[tensor]);
  targets_.clear();
  for (const int reader : p_.consumers_of(tensor)) {
    const int there = copies_.device(reader);
    if (there == here) {
      meet(reader);
    } else if (std::find(targets_.begin(), targets_.end(), there) == targets_.end()) {
      targets_.push_back(there);
    }
  }
  for (const int target : targets_) {
    const double seconds = p_.transfer_seconds(tensor, here, target);
    const int channel = channel_of(tensor, target);
    if (channel < 0) {
      events_.push({now_ + seconds, -1, tensor, target});
      expect({now_ + seconds, -1, tensor, target});
      continue;
    }
    channels_[channel].waiting.push({seconds, -1, tensor, target});
    serve(channel);
  }
}

// The channel that a tensor occupies on its way; -1 where it occupies none.
int PlacedList::channel_of(int tensor, int target) const {
  if (p_.signal[tensor] || !p_.contention) return -1;
  const int here = copies_.device(p_.producer[tensor]);
  return p_.channel[static_cast<size_t>(here) * p_.d + target];
}

void PlacedList::serve(int channel) {
  auto& [busy, waiting] = channels_[channel];
  if (busy || waiting.empty()) return;
  Event sent = waiting.front();
  waiting.pop();
  sent.time += now_;
  busy = true;
  events_.push(sent);
  expect(sent);
}

void PlacedList::arrive(int tensor, int target) {
  if (const int channel = channel_of(tensor, target); channel >= 0) {
    channels_[channel].busy = false;
    serve(channel);
  }
  if (p_.size[tensor] > 0) admission_.arrive(tensor);
  for (const int reader : p_.consumers_of(tensor))
    if (copies_.device(reader) == target) {
      if (patience_ > 0 && awaited_[reader]) --arriving_[reader];
      meet(reader);
    }
}

// One more input of an op is there.
void PlacedList::meet(int op) {
  if (--needs_[op] == 0)
    open(op);
  else
    note_opening(op);
}

}  // namespace situate::search
