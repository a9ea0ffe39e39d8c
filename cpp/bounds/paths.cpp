#include "bounds/paths.h"

#include <algorithm>
#include <utility>

#include "problem/sentinels.h"

namespace situate::bounds {
namespace {

class LongestPaths {
 public:
  LongestPaths(const problem::Problem& problem, bool free)
      : p_(problem), free_(free), paths_{table(problem), table(problem)}, nearest_(problem.n) {}

  Paths found() {
    for (const int op : p_.order) begin_of(op);
    for (auto op = p_.order.rbegin(); op != p_.order.rend(); ++op) end_of(*op);
    return std::move(paths_);
  }

 private:
  static std::vector<double> table(const problem::Problem& p) {
    return std::vector<double>(static_cast<size_t>(p.n) * p.d, never);
  }
  bool may_run(int op, int device) const { return p_.may_run(p_.unit[op], device); }
  double* row(std::vector<double>& table, int op) const {
    return &table[static_cast<size_t>(op) * p_.d];
  }

  void begin_of(int op) {
    double* head = row(paths_.head, op);
    for (int device = 0; device < p_.d; ++device) {
      if (!may_run(op, device)) continue;
      head[device] = 0;
      for (const int tensor : p_.inputs_of(op))
        head[device] = std::max(head[device], arrival(tensor, op, device));
    }
    nearest_[op] = with_op(op, head);
  }

  void end_of(int op) {
    double* tail = row(paths_.tail, op);
    for (int device = 0; device < p_.d; ++device) {
      if (!may_run(op, device)) continue;
      tail[device] = 0;
      for (const int tensor : p_.outputs_of(op))
        for (const int consumer : p_.consumers_of(tensor))
          tail[device] = std::max(tail[device], rest(tensor, op, consumer, device));
    }
    nearest_[op] = with_op(op, tail);
  }

  // The op with what is before or after it, where that is shortest.
  double with_op(int op, const double* beside) const {
    double least = never;
    for (int device = 0; device < p_.d; ++device)
      if (may_run(op, device)) least = std::min(least, beside[device] + p_.op_seconds(op, device));
    return least;
  }

  // When a tensor is there at the earliest, from whichever device.
  double arrival(int tensor, int op, int device) {
    const int producer = p_.producer[tensor];
    if (free_) return nearest_[producer];
    const double* head = row(paths_.head, producer);
    double first = never;
    for (int source = 0; source < p_.d; ++source) {
      if (!may_be_on(producer, source, op, device)) continue;
      const double end = head[source] + p_.op_seconds(producer, source);
      first = std::min(first, end + between(tensor, source, device));
    }
    return first;
  }

  // What follows a tensor at least, from its producer's device on.
  double rest(int tensor, int op, int consumer, int device) {
    if (free_) return nearest_[consumer];
    const double* tail = row(paths_.tail, consumer);
    double least = never;
    for (int target = 0; target < p_.d; ++target) {
      if (!may_be_on(consumer, target, op, device)) continue;
      const double after = p_.op_seconds(consumer, target) + tail[target];
      least = std::min(least, between(tensor, device, target) + after);
    }
    return least;
  }

  // Whether op a may be on its device while op b is on the other: a group is not parted.
  bool may_be_on(int a, int device_a, int b, int device_b) const {
    return may_run(a, device_a) && (device_a == device_b || p_.unit[a] != p_.unit[b]);
  }
  double between(int tensor, int source, int target) const {
    return source == target ? 0 : p_.transfer_seconds(tensor, source, target);
  }

  const problem::Problem& p_;
  const bool free_;
  Paths paths_;
  std::vector<double> nearest_;  // n: what `with_op` says of each op
};

}  // namespace

Paths longest_paths(const problem::Problem& problem, bool free) {
  return LongestPaths(problem, free).found();
}

}  // namespace situate::bounds
