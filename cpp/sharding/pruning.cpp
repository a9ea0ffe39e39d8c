#include "sharding/pruning.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <span>
#include <utility>

namespace situate::sharding {

namespace {

constexpr int64_t kMostBytes = std::numeric_limits<int64_t>::max();

// The most of a sequence between two places. Level k has the most of each 2^k numbers in a row, and
// two of these cover a range.
class RangeMost {
 public:
  explicit RangeMost(std::vector<int64_t> numbers) : levels_{std::move(numbers)} {
    for (size_t step = 1; 2 * step <= levels_[0].size(); step *= 2) {
      const std::vector<int64_t>& below = levels_.back();
      std::vector<int64_t> level(below.size() - step);
      for (size_t t = 0; t < level.size(); ++t) level[t] = std::max(below[t], below[t + step]);
      levels_.push_back(std::move(level));
    }
  }
  int64_t most(int begin, int end) const {
    const int level = std::bit_width(static_cast<unsigned>(end - begin)) - 1;
    return std::max(levels_[level][begin], levels_[level][end - (1 << level)]);
  }

 private:
  std::vector<std::vector<int64_t>> levels_;
};

class Pruning {
 public:
  Pruning(const Instance& instance, std::vector<uint8_t>& keep)
      : instance_(instance), keep_(keep), load_(instance.most_strategies()) {}

  bool run() {
    if (!drop_inconsistent()) return false;
    for (bool again = true; again;) {
      again = false;
      if (!drop_large(again)) return false;
      if (again && !drop_inconsistent()) return false;
    }
    return true;
  }

 private:
  const uint8_t* keep(int op) const { return &keep_[instance_.first(op)]; }

  // Calls visit(begin, end, loads of the op's strategies) for each stretch of time between two
  // changes of what the op has in memory.
  template <typename Visit>
  void stretches(int op, Visit visit) {
    events_.clear();
    for (const Part& part : instance_.parts(op)) {
      if (part.begin == part.end) continue;
      events_.push_back({part.begin, 1, part.usage});
      events_.push_back({part.end, -1, part.usage});
    }
    std::sort(events_.begin(), events_.end(),
              [](const Event& a, const Event& b) { return a.time < b.time; });
    const int count = instance_.strategies(op);
    std::fill_n(load_.begin(), count, 0);
    for (size_t k = 0; k < events_.size(); ++k) {
      const Event& event = events_[k];
      for (int x = 0; x < count; ++x) load_[x] += event.sign * event.usage[x];
      if (k + 1 == events_.size() || events_[k + 1].time == event.time) continue;
      visit(event.time, events_[k + 1].time);
    }
  }

  int64_t least_load(int op) const {
    int64_t least = kMostBytes;
    for (int x = 0; x < instance_.strategies(op); ++x)
      if (keep(op)[x]) least = std::min(least, load_[x]);
    return least;
  }

  // Drops what exceeds the limit beside the least memory of all other ops.
  bool drop_large(bool& any) {
    std::vector<int64_t> change(instance_.times() + 1);
    for (int op = 0; op < instance_.ops(); ++op)
      stretches(op, [&](int begin, int end) {
        const int64_t least = least_load(op);
        change[begin] += least;
        change[end] -= least;
      });
    for (int t = 0; t < instance_.times(); ++t) change[t + 1] += change[t];
    const RangeMost loads(std::move(change));
    for (int op = 0; op < instance_.ops(); ++op) {
      uint8_t* own = &keep_[instance_.first(op)];
      const int count = instance_.strategies(op);
      excess_.assign(count, 0);
      stretches(op, [&](int begin, int end) {
        const int64_t others = loads.most(begin, end) - least_load(op);
        for (int x = 0; x < count; ++x) excess_[x] |= others + load_[x] > instance_.limit();
      });
      for (int x = 0; x < count; ++x) {
        if (!own[x] || !excess_[x]) continue;
        own[x] = 0;
        any = true;
      }
      if (std::all_of(own, own + count, [](uint8_t k) { return k == 0; })) return false;
    }
    return true;
  }

  // Drops what stands with no strategy of some neighbour.
  bool drop_inconsistent() {
    std::vector<uint8_t> waits(instance_.ops(), 1);
    std::vector<int> pending(instance_.ops());
    for (int i = 0; i < instance_.ops(); ++i) pending[i] = i;
    for (size_t next = 0; next < pending.size(); ++next) {
      const int op = pending[next];
      waits[op] = 0;
      int left = 0;
      bool any = false;
      uint8_t* own = &keep_[instance_.first(op)];
      for (int x = 0; x < instance_.strategies(op); ++x) {
        if (own[x] && !stands(op, x)) own[x] = 0, any = true;
        left += own[x];
      }
      if (left == 0) return false;
      if (!any) continue;
      for (const Neighbour& n : instance_.neighbours(op)) {
        if (waits[n.op]) continue;
        waits[n.op] = 1;
        pending.push_back(n.op);
      }
    }
    return true;
  }

  bool stands(int op, int x) const {
    if (instance_.cost(op)[x] >= kForbidden) return false;
    for (const Neighbour& n : instance_.neighbours(op)) {
      const int far = instance_.strategies(n.op);
      const double* row = n.rows + static_cast<int64_t>(x) * far;
      bool any = false;
      for (int y = 0; y < far && !any; ++y) any = keep(n.op)[y] && row[y] < kForbidden;
      if (!any) return false;
    }
    return true;
  }

  struct Event {
    int time, sign;
    const int64_t* usage;
  };

  const Instance& instance_;
  std::vector<uint8_t>& keep_;
  std::vector<int64_t> load_;
  std::vector<uint8_t> excess_;
  std::vector<Event> events_;
};

}  // namespace

bool prune(const Instance& instance, std::vector<uint8_t>& keep) {
  return Pruning(instance, keep).run();
}

}  // namespace situate::sharding
