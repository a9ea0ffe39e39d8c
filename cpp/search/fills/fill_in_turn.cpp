#include "search/fills/fill_in_turn.h"

#include <algorithm>

namespace situate::search {
namespace {

using problem::Problem;

class Turn {
 public:
  Turn(const Problem& problem, std::vector<double> room, std::vector<int32_t> devices)
      : p_(problem), room_(std::move(room)), devices_(std::move(devices)) {}

  int take(int unit, double weight) {
    while (devices_.size() - full_ > 1 && room_[devices_[full_]] < weight &&
           p_.may_run(unit, devices_[full_]))
      ++full_;
    const int device = first_allowed(unit);
    room_[device] -= weight;
    return device;
  }

 private:
  int first_allowed(int unit) const {
    const auto may = [&](int device) { return p_.may_run(unit, device); };
    const auto found = std::find_if(devices_.begin() + full_, devices_.end(), may);
    if (found != devices_.end()) return *found;
    int device = 0;
    while (device + 1 < p_.d && !may(device)) ++device;
    return may(device) ? device : 0;
  }

  const Problem& p_;
  std::vector<double> room_;      // of each device
  std::vector<int32_t> devices_;  // those before `full_` have left the turn
  size_t full_ = 0;
};

}  // namespace

std::vector<int32_t> fill_in_turn(const Problem& p, std::span<const int32_t> ops,
                                  std::span<const double> weight, std::vector<double> room,
                                  std::vector<int32_t> turn) {
  Turn devices(p, std::move(room), std::move(turn));
  std::vector<int32_t> device_of(p.units, -1);
  for (const int op : ops) {
    const int unit = p.unit[op];
    if (device_of[unit] < 0) device_of[unit] = devices.take(unit, weight[unit]);
  }
  return device_of;
}

}  // namespace situate::search
