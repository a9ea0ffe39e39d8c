#include "simulation/fullest_moment.h"

#include <algorithm>

namespace situate::sim {

namespace {

class FullestMoment {
 public:
  explicit FullestMoment(const OrderedPlacement& plan)
      : p_(plan.problem()),
        plan_(plan),
        added_(static_cast<size_t>(p_.d) * (p_.n + 1)),
        first_(p_.d),
        last_(p_.d) {
    for (int op = 0; op < p_.n; ++op) {
      const int device = plan.device()[op], at = plan.position(op);
      hold({device, 0, p_.n}, p_.persistent[op]);
      hold({device, at, at}, p_.workspace[op]);
    }
    for (int tensor = 0; tensor < p_.m; ++tensor)
      for_each_stay(tensor, [&](const Stay& stay) { hold(stay, p_.size[tensor]); });
    find();
  }

  std::vector<int32_t> live() {
    std::vector<int32_t> ops = {plan_.order()[at_]};
    for (int tensor = 0; tensor < p_.m; ++tensor)
      for_each_stay(tensor, [&](const Stay& stay) {
        if (stay.device != device_ || stay.from > at_ || stay.to < at_) return;
        ops.push_back(p_.producer[tensor]);
        if (stay.to < p_.n) ops.push_back(plan_.order()[stay.to]);
      });
    return ops;
  }

 private:
  // Of a tensor on a device, by positions; to the number of ops where it stays to the end.
  struct Stay {
    int device, from, to;
  };

  int64_t& added(int device, int at) {
    return added_[static_cast<size_t>(device) * (p_.n + 1) + at];
  }
  void hold(const Stay& stay, int64_t bytes) {
    added(stay.device, stay.from) += bytes;
    if (stay.to < p_.n) added(stay.device, stay.to + 1) -= bytes;
  }
  void find() {
    int64_t most = -1;
    for (int device = 0; device < p_.d; ++device) {
      int64_t used = 0;
      for (int at = 0; at < p_.n; ++at) {
        used += added(device, at);
        if (used <= most) continue;
        most = used;
        device_ = device;
        at_ = at;
      }
    }
  }
  // A tensor that is sent comes when it is made; where transfers block, before its first reader.
  template <typename Each>
  void for_each_stay(int tensor, Each each) {
    if (p_.size[tensor] == 0) return;
    const int producer = p_.producer[tensor], home = plan_.device()[producer];
    const int made = plan_.position(producer);
    std::fill(first_.begin(), first_.end(), p_.n);
    std::fill(last_.begin(), last_.end(), -1);
    last_[home] = made;
    for (const int consumer : p_.consumers_of(tensor)) {
      const int device = plan_.device()[consumer], at = plan_.position(consumer);
      first_[device] = std::min(first_[device], at);
      last_[device] = std::max(last_[device], at);
    }
    for (int device = 0; device < p_.d; ++device) {
      if (device == home || last_[device] < 0) continue;
      const int sent = p_.blocking ? first_[device] : made;
      each(Stay{device, sent, last_[device]});
      last_[home] = std::max(last_[home], sent);
    }
    if (!p_.resident[tensor]) each(Stay{home, made, p_.output[tensor] ? p_.n : last_[home]});
  }

  const problem::Problem& p_;
  const OrderedPlacement& plan_;
  std::vector<int64_t> added_;         // devices x positions: bytes that come less those that go
  std::vector<int32_t> first_, last_;  // devices: positions of readers of the tensor at hand
  int device_ = 0, at_ = 0;
};

}  // namespace

std::vector<int32_t> live_when_fullest(const OrderedPlacement& plan) {
  return FullestMoment(plan).live();
}

}  // namespace situate::sim
