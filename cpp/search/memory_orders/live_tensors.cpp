#include "search/memory_orders/live_tensors.h"

#include <algorithm>

namespace situate::search {

LiveTensors::LiveTensors(const Problem& problem) : p_(problem), made_(p_.n), left_(p_.n) {
  for (int tensor = 0; tensor < p_.m; ++tensor) {
    const int producer = p_.producer[tensor];
    made_[producer] += bytes(tensor);
    if (p_.output[tensor] || !p_.consumers_of(tensor).empty()) left_[producer] += bytes(tensor);
  }
}

int LiveTensors::Use::fullest() const {
  return static_cast<int>(std::max_element(during.begin(), during.end()) - during.begin());
}

LiveTensors::Use LiveTensors::use(std::span<const int32_t> order) const {
  std::vector<int32_t> place(p_.n);
  for (int i = 0; i < p_.n; ++i) place[order[i]] = i;
  // Bytes that go at each place, until it is known what is in use there.
  Use use{std::vector<int64_t>(p_.n), std::vector<int64_t>(p_.n)};
  for (int tensor = 0; tensor < p_.m; ++tensor) {
    if (p_.output[tensor]) continue;
    int last = place[p_.producer[tensor]];
    for (const int reader : p_.consumers_of(tensor)) last = std::max(last, place[reader]);
    use.after[last] -= bytes(tensor);
  }
  int64_t now = 0;
  for (int i = 0; i < p_.n; ++i) {
    now += made_[order[i]];
    use.during[i] = problem::add_bytes(now, p_.workspace[order[i]]);
    use.after[i] = now += use.after[i];
  }
  return use;
}

}  // namespace situate::search
