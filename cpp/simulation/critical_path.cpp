#include "simulation/critical_path.h"

#include <algorithm>

namespace situate::sim {

namespace {

class CriticalPath {
 public:
  CriticalPath(const OrderedPlacement& plan, const PlanTimes& times)
      : p_(plan.problem()), plan_(plan), times_(times), previous_(p_.n) {
    std::vector<int32_t> latest(p_.d, -1);  // op of each device
    for (const int op : plan.order()) {
      previous_[op] = latest[device(op)];
      latest[device(op)] = op;
      if (end(op) > end(last_)) last_ = op;
    }
  }

  std::vector<int32_t> held_up() const {
    std::vector<int32_t> ops;
    for (int op = last_, before; op >= 0; op = before) {
      const int previous = previous_[op];
      const bool busy = previous >= 0 && end(previous) == times_.start[op];
      before = busy ? previous : sender_to(op);
      if (before < 0 || (busy && reads(op, previous))) continue;
      ops.push_back(op);
      ops.push_back(before);
    }
    return ops;
  }

 private:
  int device(int op) const { return plan_.device()[op]; }
  // As the timer adds it up, so that what begins at this moment is told by equality.
  double end(int op) const { return times_.start[op] + p_.op_seconds(op, device(op)); }
  // The producer of what arrives as the op starts, -1 if nothing does.
  int sender_to(int op) const {
    for (int input = p_.input_start[op]; input < p_.input_start[op + 1]; ++input) {
      const int producer = p_.producer[p_.inputs[input]];
      if (device(producer) != device(op) && times_.arrival[input] == times_.start[op])
        return producer;
    }
    return -1;
  }
  bool reads(int op, int producer) const {
    const auto inputs = p_.inputs_of(op);
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](int tensor) { return p_.producer[tensor] == producer; });
  }

  const problem::Problem& p_;
  const OrderedPlacement& plan_;
  const PlanTimes& times_;
  std::vector<int32_t> previous_;  // op of the same device, -1 for none
  int last_ = 0;                   // op to end
};

}  // namespace

std::vector<int32_t> held_up(const OrderedPlacement& plan, const PlanTimes& times) {
  return CriticalPath(plan, times).held_up();
}

}  // namespace situate::sim
