#include "search/placed/admission.h"

#include <algorithm>

namespace situate::search {

using problem::add_bytes;

Admission::Admission(const Copies& copies)
    : copies_(copies),
      p_(copies.problem()),
      turn_(p_.n, 0),
      begins_(copies.all().size(), 0),
      length_(p_.d, 0),
      users_(copies.all().size()),
      holders_(copies.all().size()),
      used_(p_.d, 0),
      room_(p_.capacity),
      needed_(p_.d, 0),
      rows_(p_.d),
      started_(p_.n, 0) {
  for (int op = 0; op < p_.n; ++op) room_[copies.device(op)] -= p_.persistent[op];
  for (size_t copy = 0; copy < users_.size(); ++copy) count_holders(static_cast<int>(copy));
  if (p_.memory == problem::Memory::persistent) return;
  number();
  fill();
}

void Admission::count_holders(int copy) {
  const int tensor = copies_[copy].tensor, producer = p_.producer[tensor];
  users_[copy] = static_cast<int32_t>(copies_.users(copy).size());
  holders_[copy] = users_[copy];
  if (!copies_.at_home(copy)) return;
  const int elsewhere = copies_.end_of(tensor) - copies_.first_of(tensor) - 1;
  holders_[copy] += elsewhere + !copies_.late(producer) + copies_[copy].stays;
}

// Gives each op its place in its device's row, and in those of the devices that it sends to.
void Admission::number() {
  std::vector<int32_t> last(p_.d, -1);  // op that each row ends with
  const auto place = [&](int device, int op) {
    if (last[device] != op) ++length_[device];
    last[device] = op;
    return length_[device] - 1;
  };
  for (const int op : copies_.turns()) {
    if (copies_.late(op)) continue;
    turn_[op] = place(copies_.device(op), op);
    for (const int tensor : p_.outputs_of(op))
      for (int copy = copies_.first_of(tensor); copy < copies_.end_of(tensor); ++copy)
        begins_[copy] = place(copies_[copy].device, op);
  }
  for (size_t copy = 0; copy < begins_.size(); ++copy)
    if (copies_.late(p_.producer[copies_[static_cast<int>(copy)].tensor]))
      begins_[copy] = turn_[copies_.users(static_cast<int>(copy)).front()];
}

// The bytes of every row; devices that have room for everything at once need none.
void Admission::fill() {
  std::vector<std::vector<int64_t>> rise(p_.d);  // from one op of a row to the next
  std::vector<int64_t> all(p_.d, 0), workspace(p_.d, 0);
  for (int device = 0; device < p_.d; ++device) rise[device].assign(length_[device] + 1, 0);
  for (int op = 0; op < p_.n; ++op) {
    const int device = copies_.device(op);
    workspace[device] = std::max(workspace[device], p_.workspace[op]);
    if (copies_.late(op)) continue;
    rise[device][turn_[op]] += p_.workspace[op];
    rise[device][turn_[op] + 1] -= p_.workspace[op];
  }
  for (size_t k = 0; k < begins_.size(); ++k) {
    const int copy = static_cast<int>(k), device = copies_[copy].device;
    const auto users = copies_.users(copy);
    const int last = copies_[copy].stays ? length_[device] - 1
                     : users.empty()     ? begins_[copy]
                                         : turn_[users.back()];
    rise[device][begins_[copy]] += copies_.bytes(copy);
    rise[device][last + 1] -= copies_.bytes(copy);
    all[device] = add_bytes(all[device], copies_.bytes(copy));
  }
  for (int device = 0; device < p_.d; ++device) {
    if (add_bytes(all[device], workspace[device]) <= room_[device]) continue;
    for (int place = 0; place < length_[device]; ++place)
      rise[device][place + 1] += rise[device][place];
    rows_[device].emplace(std::span(rise[device]).first(length_[device]));
    needed_[device] = rows_[device]->largest();
    const int64_t beyond = std::max<int64_t>(0, needed_[device] - room_[device]);
    excess_ += static_cast<double>(beyond) / static_cast<double>(p_.capacity[device]);
    room_[device] += beyond;
  }
}

void Admission::reserve(std::span<const int64_t> bytes) {
  for (int device = 0; device < p_.d; ++device)
    room_[device] = std::max(needed_[device], room_[device] - bytes[device]);
}

bool Admission::admit(int op) {
  start(op);
  if (std::all_of(changes_.begin(), changes_.end(),
                  [&](const Change& change) { return fits(change.device); }))
    return true;
  revert();
  return false;
}

void Admission::start(int op) {
  changes_.clear();
  shortened_.clear();
  begun_.clear();
  for (const int tensor : p_.inputs_of(op))
    if (const int producer = p_.producer[tensor]; copies_.late(producer) && !started_[producer])
      make(producer);
  make(op);
  const int here = copies_.device(op);
  change(here, now, now, p_.workspace[op]);
  change(here, turn_[op], turn_[op], -p_.workspace[op]);
  for (int input = p_.input_start[op]; input < p_.input_start[op + 1]; ++input)
    if (const int copy = copies_.read_as(input); copy >= 0) shorten(copy);
}

// What the op makes is there before all that has not started, or gone where only others read it.
void Admission::make(int op) {
  started_[op] = 1;
  begun_.push_back(op);
  for (const int tensor : p_.outputs_of(op))
    for (int copy = copies_.first_of(tensor); copy < copies_.end_of(tensor); ++copy) {
      const auto [_, device, first_user, last_user, stays] = copies_[copy];
      const int64_t bytes = copies_.bytes(copy);
      change(device, now, now, bytes);
      if (first_user == last_user && !stays)
        change(device, begins_[copy], begins_[copy], -bytes);
      else
        change(device, 0, begins_[copy] - 1, bytes);
    }
}

// What no op reads any more that has not started is not there for those behind its last reader.
void Admission::shorten(int copy) {
  const auto users = copies_.users(copy);
  const int before = users_[copy];
  int left = before;
  while (left > 0 && started_[users[left - 1]]) --left;
  if (left == before) return;
  shortened_.push_back({copy, before});
  users_[copy] = left;
  if (copies_[copy].stays) return;
  const int first = left > 0 ? turn_[users[left - 1]] + 1 : 0;
  change(copies_[copy].device, first, turn_[users[before - 1]], -copies_.bytes(copy));
}

void Admission::change(int device, int first, int last, int64_t bytes) {
  if (!rows_[device]) return;
  changes_.push_back({device, first, last, bytes});
  apply(changes_.back());
}

void Admission::apply(const Change& change) {
  if (change.first == now)
    used_[change.device] += change.bytes;
  else
    rows_[change.device]->add(change.first, change.last, change.bytes);
}

bool Admission::fits(int device) const {
  return used_[device] <= room_[device] && rows_[device]->largest() <= room_[device];
}

void Admission::revert() {
  for (const auto& [device, first, last, bytes] : changes_) apply({device, first, last, -bytes});
  for (const auto& [copy, users] : shortened_) users_[copy] = users;
  for (const int op : begun_) started_[op] = 0;
}

void Admission::end(int op) {
  const int here = copies_.device(op);
  if (rows_[here]) used_[here] -= p_.workspace[op];
  for (const int tensor : p_.outputs_of(op))
    if (const int copy = copies_.first_of(tensor);
        copy < copies_.end_of(tensor) && copies_.at_home(copy))
      release(copy);
  for (int input = p_.input_start[op]; input < p_.input_start[op + 1]; ++input)
    if (const int copy = copies_.read_as(input); copy >= 0) release(copy);
}

void Admission::arrive(int tensor) {
  if (const int copy = copies_.first_of(tensor);
      copy < copies_.end_of(tensor) && copies_.at_home(copy))
    release(copy);
}

void Admission::release(int copy) {
  if (--holders_[copy] == 0 && rows_[copies_[copy].device])
    used_[copies_[copy].device] -= copies_.bytes(copy);
}

}  // namespace situate::search
