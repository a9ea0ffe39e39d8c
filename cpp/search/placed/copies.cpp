#include "search/placed/copies.h"

#include <algorithm>

namespace situate::search {

Copies::Copies(const Problem& problem, std::span<const int32_t> device,
               std::span<const int32_t> turns)
    : problem_(problem),
      device_(device),
      turns_(turns),
      first_(problem.m + 1, 0),
      read_as_(problem.inputs.size(), -1),
      late_(problem.n) {
  for (int op = 0; op < problem.n; ++op) late_[op] = is_late(op);
  for (int tensor = 0; tensor < problem.m; ++tensor) {
    first_[tensor] = static_cast<int32_t>(copies_.size());
    if (problem.size[tensor] > 0) add(tensor);
  }
  first_[problem.m] = static_cast<int32_t>(copies_.size());
  list_users();
}

bool Copies::is_late(int op) const {
  const auto& p = problem_;
  if (!p.inputs_of(op).empty() || p.op_seconds(op, device_[op]) > 0 || p.workspace[op] > 0)
    return false;
  const auto outputs = p.outputs_of(op);
  return !outputs.empty() && std::all_of(outputs.begin(), outputs.end(), [&](int tensor) {
    const auto readers = p.consumers_of(tensor);
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](int reader) {
      return device_[reader] == device_[op];
    });
  });
}

void Copies::add(int tensor) {
  const auto& p = problem_;
  const int home = device_[p.producer[tensor]];
  if (!p.resident[tensor])
    copies_.push_back({tensor, home, 0, 0, static_cast<bool>(p.output[tensor])});
  const auto begin = copies_.size();
  for (const int consumer : p.consumers_of(tensor)) {
    const int there = device_[consumer];
    if (there == home ||
        std::any_of(copies_.begin() + static_cast<std::ptrdiff_t>(begin), copies_.end(),
                    [&](const Copy& copy) { return copy.device == there; }))
      continue;
    copies_.push_back({tensor, there, 0, 0, false});
  }
}

int Copies::copy_on(int tensor, int device) const {
  for (int copy = first_[tensor]; copy < first_[tensor + 1]; ++copy)
    if (copies_[copy].device == device) return copy;
  return -1;
}

void Copies::list_users() {
  const auto& p = problem_;
  std::vector<int32_t> count(copies_.size(), 0);
  for (int op = 0; op < p.n; ++op)
    for (int input = p.input_start[op]; input < p.input_start[op + 1]; ++input) {
      const int copy = copy_on(p.inputs[input], device_[op]);
      read_as_[input] = copy;
      if (copy >= 0) ++count[copy];
    }
  int32_t total = 0;
  for (size_t copy = 0; copy < copies_.size(); ++copy) {
    copies_[copy].first_use = copies_[copy].last_use = total;
    total += count[copy];
  }
  users_.resize(total);
  for (const int op : turns_)
    for (int input = p.input_start[op]; input < p.input_start[op + 1]; ++input)
      if (const int copy = read_as_[input]; copy >= 0) users_[copies_[copy].last_use++] = op;
}

}  // namespace situate::search
