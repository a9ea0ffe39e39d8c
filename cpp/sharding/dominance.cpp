#include "sharding/dominance.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace situate::sharding {

namespace {

class Dominance {
 public:
  Dominance(const Instance& instance, std::vector<uint8_t>& keep)
      : instance_(instance),
        keep_(keep),
        waits_(instance.ops(), 1),
        pending_(instance.ops()),
        witness_(instance.ops()) {
    std::iota(pending_.begin(), pending_.end(), 0);
    for (int op = 0; op < instance.ops(); ++op)
      while (!keep_[instance.first(op) + witness_[op]]) ++witness_[op];
  }

  void run() {
    for (size_t next = 0; next < pending_.size(); ++next) {
      const int op = pending_[next];
      waits_[op] = 0;
      if (instance_.strategies(op) == 1 || !drop(op)) continue;
      wait(op);
      for (const Neighbour& n : instance_.neighbours(op)) wait(n.op);
    }
  }

 private:
  void wait(int op) {
    if (waits_[op]) return;
    waits_[op] = 1;
    pending_.push_back(op);
  }

  // Drops the dominated strategies of an op; false if there is none.
  bool drop(int op) {
    uint8_t* keep = &keep_[instance_.first(op)];
    const int count = instance_.strategies(op);
    bool any = false;
    for (int x = 0; x < count; ++x) {
      for (int better = 0; keep[x] && better < count; ++better) {
        if (better == x || !keep[better] || !dominates(op, better, x)) continue;
        keep[x] = 0;
        any = true;
      }
    }
    while (!keep[witness_[op]]) ++witness_[op];
    return any;
  }

  bool dominates(int op, int better, int x) const {
    for (const Part& part : instance_.parts(op))
      if (part.usage[better] > part.usage[x]) return false;
    double most = instance_.cost(op)[better] - instance_.cost(op)[x];
    if (most + some_differences(op, better, x) > 0) return false;
    for (const Neighbour& n : instance_.neighbours(op)) most += largest_difference(n, better, x);
    return most <= 0;
  }

  // At most the sum of the largest differences, from one strategy of each neighbour alone: most
  // pairs of strategies need no closer look.
  double some_differences(int op, int better, int x) const {
    double sum = 0;
    for (const Neighbour& n : instance_.neighbours(op)) {
      const int64_t far = instance_.strategies(n.op);
      const int y = witness_[n.op];
      sum += n.rows[better * far + y] - n.rows[x * far + y];
    }
    return sum;
  }

  double largest_difference(const Neighbour& n, int better, int x) const {
    const int far = instance_.strategies(n.op);
    const uint8_t* keep = &keep_[instance_.first(n.op)];
    const double* row = n.rows + static_cast<int64_t>(better) * far;
    const double* other = n.rows + static_cast<int64_t>(x) * far;
    double most = -std::numeric_limits<double>::infinity();
    for (int y = 0; y < far; ++y)
      if (keep[y]) most = std::max(most, row[y] - other[y]);
    return most;
  }

  const Instance& instance_;
  std::vector<uint8_t>& keep_;
  std::vector<uint8_t> waits_;
  std::vector<int> pending_;
  std::vector<int> witness_;  // by op, the first strategy that is kept
};

}  // namespace

void drop_dominated(const Instance& instance, std::vector<uint8_t>& keep) {
  Dominance(instance, keep).run();
}

}  // namespace situate::sharding
