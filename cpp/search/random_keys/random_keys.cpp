#include "search/random_keys/random_keys.h"

#include <algorithm>
#include <utility>

namespace situate::search {

namespace {
// Tensors up to the last that is sent: signals, which stand behind the others, have no keys.
size_t tensors_sent(const Problem& p) {
  int count = p.d > 1 ? p.m : 0;
  while (count > 0 && (p.signal[count - 1] || p.consumers_of(count - 1).empty())) --count;
  return count;
}
}  // namespace

RandomKeys::RandomKeys(const Problem& problem)
    : problem_(problem), count_(of_transfers() + tensors_sent(problem) * problem.d) {
  for (int unit = 0; unit < problem.units; ++unit)
    for (int device = 0; device < problem.d; ++device)
      barred_.push_back(problem.may_run(unit, device) ? 0.0f : -2.0f);
}

sim::Decision RandomKeys::decode(const float* keys, int32_t* placement) const {
  const int d = problem_.d;
  for (int unit = 0; unit < problem_.units; ++unit) {
    const auto members = problem_.members_of(unit);
    const float* affinity = keys + static_cast<size_t>(members[0]) * d;
    const float* barred = barred_.data() + static_cast<size_t>(unit) * d;
    float most = affinity[0] + barred[0];
    int best = 0;
    for (int device = 1; device < d; ++device) {
      const float here = affinity[device] + barred[device];
      best = here > most ? device : best;
      most = std::max(most, here);
    }
    for (const int op : members) placement[op] = best;
  }
  return {placement, keys + of_ops(), keys + of_transfers()};
}

void RandomKeys::encode(const int32_t* placement, const int32_t* order, float* keys) const {
  const auto& p = problem_;
  for (int op = 0; op < p.n; ++op) {
    float* affinity = keys + static_cast<size_t>(op) * p.d;
    std::swap(affinity[placement[op]], *std::max_element(affinity, affinity + p.d));
  }
  float* priority = keys + of_ops();
  for (int place = 0; place < p.n; ++place)
    priority[order[place]] = static_cast<float>(p.n - place) / static_cast<float>(p.n);
  float* sent = keys + of_transfers();
  for (size_t tensor = 0; tensor * p.d < count_ - of_transfers(); ++tensor, sent += p.d) {
    std::fill_n(sent, p.d, 0.0f);
    for (const int consumer : p.consumers_of(static_cast<int>(tensor)))
      sent[placement[consumer]] = std::max(sent[placement[consumer]], priority[consumer]);
  }
}

}  // namespace situate::search
