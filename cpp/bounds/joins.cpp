#include "bounds/joins.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "bounds/device_kinds.h"
#include "problem/reversed.h"
#include "problem/sentinels.h"

namespace situate::bounds {
namespace {

constexpr int64_t work_between_clocks = 1024;

// What may still be looked at.
class Effort {
 public:
  Effort(int64_t work, double seconds) : work_(work), seconds_(seconds) {}

  // False once that was too much.
  bool spend(int64_t work) {
    work_ -= work;
    until_clock_ -= work;
    if (until_clock_ < 0) {
      until_clock_ = work_between_clocks;
      if (std::chrono::duration<double>(clock::now() - begin_).count() >= seconds_) work_ = 0;
    }
    return work_ > 0;
  }

 private:
  using clock = std::chrono::steady_clock;

  int64_t work_, until_clock_ = 0;
  const double seconds_;
  const clock::time_point begin_ = clock::now();
};

// The least time at which each op may start on each kind of device.
class Starts {
 public:
  Starts(const problem::Problem& problem, Effort effort)
      : p_(problem),
        kinds_(problem),
        effort_(effort),
        seconds_(table()),
        start_(table()),
        here_(p_.n),
        away_(p_.n),
        reached_(p_.n, -1),
        queued_(p_.n, -1) {
    for (int op = 0; op < p_.n; ++op) take_seconds(op);
  }

  // Makes heads (n, d) as late as they are found to be.
  void raise(std::vector<double>& heads) {
    size_t links = 0;
    for (const auto& to_kind : kinds_.links_to) links += to_kind.size();
    if (!effort_.spend(static_cast<int64_t>(p_.consumers.size() * links))) return;
    for (const int op : p_.order) {
      double* head = &heads[static_cast<size_t>(op) * p_.d];
      double* start = row(start_, op);
      for (int device = 0; device < p_.d; ++device) {
        double& of_kind = start[kinds_.of_device[device]];
        of_kind = std::min(of_kind, head[device]);
      }
      wait_for_inputs(op, start);
      const bool meets = p_.inputs_of(op).size() > 1;
      for (int kind = 0; meets && kind < kinds_.count(); ++kind)
        if (start[kind] < never) start[kind] = joined(op, kind, start[kind]);
      for (int device = 0; device < p_.d; ++device)
        head[device] = std::max(head[device], start[kinds_.of_device[device]]);
    }
  }

 private:
  // An op that another waits for, and when that can start where this one is on another device.
  struct Late {
    double arrival;
    int op;
  };

  // Where an op is on the way, the least seconds that it takes and the least time at which it ends.
  struct Ways {
    double seconds = never, end = never;

    void take(double other_seconds, double other_end) {
      seconds = std::min(seconds, other_seconds);
      end = std::min(end, other_end);
    }
  };

  std::vector<double> table() const {
    return std::vector<double>(static_cast<size_t>(p_.n) * kinds_.count(), never);
  }
  double* row(std::vector<double>& of, int op) const {
    return &of[static_cast<size_t>(op) * kinds_.count()];
  }
  double end(int op, int kind) const {
    const size_t at = static_cast<size_t>(op) * kinds_.count() + kind;
    return start_[at] + seconds_[at];
  }

  void take_seconds(int op) {
    double* seconds = row(seconds_, op);
    for (int kind = 0; kind < kinds_.count(); ++kind) {
      const int device = kinds_.first[kind];
      if (p_.may_run(p_.unit[op], device)) seconds[kind] = p_.op_seconds(op, device);
    }
  }

  void wait_for_inputs(int op, double* start) {
    for (const int tensor : p_.inputs_of(op))
      for (int kind = 0; kind < kinds_.count(); ++kind)
        start[kind] = std::max(start[kind], arrival(tensor, op, kind));
  }

  // When a tensor is there for an op on a kind of device.
  double arrival(int tensor, int op, int kind) const {
    const int producer = p_.producer[tensor];
    double first = end(producer, kind);
    if (p_.unit[producer] == p_.unit[op]) return first;
    for (const Link& link : kinds_.links_to[kind]) {
      const double ended = end(producer, link.source_kind);
      if (ended < first)
        first = std::min(first, ended + p_.transfer_seconds(tensor, link.source, link.target));
    }
    return first;
  }

  // Where results meet: the least t by which all have run on a device of the kind that no transfer
  // brings there by t.
  double joined(int op, int kind, double start) {
    find_late(op, kind, start);
    std::sort(late_.begin(), late_.end(), [](const Late& a, const Late& b) {
      return a.arrival != b.arrival ? a.arrival > b.arrival : a.op < b.op;
    });
    take_order(kind);
    size_t low = 0, high = late_.size();
    if (all_run(kind, high) <= start) return start;
    // The fewest, of the latest, after which the next has arrived.
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (std::max(start, all_run(kind, middle)) >= late_[middle].arrival)
        high = middle;
      else
        low = middle + 1;
    }
    const double run = std::max(start, all_run(kind, low));
    return low > 0 ? std::min(run, late_[low - 1].arrival) : run;
  }

  void take_order(int kind) {
    in_order_.resize(late_.size());
    std::iota(in_order_.begin(), in_order_.end(), 0);
    std::sort(in_order_.begin(), in_order_.end(), [&](int a, int b) {
      const double first = row(start_, late_[a].op)[kind], second = row(start_, late_[b].op)[kind];
      return first != second ? first < second : a < b;
    });
  }

  // When one device has run the first `count` of those that are late.
  double all_run(int kind, size_t count) {
    effort_.spend(static_cast<int64_t>(in_order_.size()));
    double end = 0;
    for (const int i : in_order_) {
      if (static_cast<size_t>(i) >= count) continue;
      const int op = late_[i].op;
      end = std::max(end, row(start_, op)[kind]) + row(seconds_, op)[kind];
    }
    return end;
  }

  // Ops that `op` waits for and that run on its device, of this kind, or else it starts later.
  void find_late(int op, int kind, double start) {
    late_.clear();
    mark_ = op * int64_t{kinds_.count()} + kind;
    reached_[op] = mark_;
    here_[op] = 0;
    away_[op] = never;
    queue_inputs(op);
    while (!waiting_.empty() && effort_.spend(1)) {
      std::pop_heap(waiting_.begin(), waiting_.end());
      const int a = p_.order[waiting_.back()];
      waiting_.pop_back();
      const double arrival = take_ways(a, op, kind);
      if (arrival <= start) continue;
      reached_[a] = mark_;
      late_.push_back({arrival, a});
      queue_inputs(a);
    }
    waiting_.clear();
  }

  // The least time from the start of `a` to that of `op`, with `a` on its device and on another; by
  // when `op` can start with `a` on another.
  double take_ways(int a, int op, int kind) {
    double here = 0, away = 0, arrival = 0;
    const Ways other = elsewhere(a, kind);
    for (const int tensor : p_.outputs_of(a)) {
      const Ways sent = transfer(tensor, kind);
      const auto readers = p_.consumers_of(tensor);
      effort_.spend(static_cast<int64_t>(readers.size() + kinds_.links_to[kind].size()));
      for (const int b : readers) {
        if (reached_[b] != mark_) continue;
        const double then = p_.unit[a] == p_.unit[b] ? never : here_[b];
        here = std::max(here, std::min(here_[b], away_[b]));
        away = std::max(away, std::min(sent.seconds + then, other.seconds + away_[b]));
        arrival = std::max(arrival, std::min(sent.end + then, other.end + away_[b]));
      }
    }
    const bool held = p_.unit[a] == p_.unit[op];
    here_[a] = row(seconds_, a)[kind] + here;
    away_[a] = held ? never : away;
    return held ? never : arrival;
  }

  // An op on a device that is not this one of the kind.
  Ways elsewhere(int op, int kind) {
    Ways least;
    for (int other = 0; other < kinds_.count(); ++other)
      if (other != kind || kinds_.devices[kind] > 1)
        least.take(row(seconds_, op)[other], end(op, other));
    return least;
  }

  // A tensor that is made there, and sent to the device.
  Ways transfer(int tensor, int kind) {
    const int a = p_.producer[tensor];
    Ways least;
    for (const Link& link : kinds_.links_to[kind]) {
      const double moved = p_.transfer_seconds(tensor, link.source, link.target);
      least.take(row(seconds_, a)[link.source_kind] + moved, end(a, link.source_kind) + moved);
    }
    return least;
  }

  void queue_inputs(int a) {
    for (const int tensor : p_.inputs_of(a)) {
      const int producer = p_.producer[tensor];
      if (std::exchange(queued_[producer], mark_) == mark_) continue;
      waiting_.push_back(p_.place_in_order[producer]);
      std::push_heap(waiting_.begin(), waiting_.end());
    }
  }

  const problem::Problem& p_;
  const DeviceKinds kinds_;
  Effort effort_;
  std::vector<double> seconds_, start_;  // n x kinds, infinite where an op may not run
  // n: of the op and the kind that are looked at, the least time from each op's start to that of
  // this one, on its device and on another; marks of those for which these are known, and of those
  // that have been queued.
  std::vector<double> here_, away_;
  std::vector<int64_t> reached_, queued_;
  int64_t mark_ = 0;
  std::vector<int> waiting_;   // a heap of places in the order
  std::vector<Late> late_;     // the latest first
  std::vector<int> in_order_;  // of start, those that are late
};

}  // namespace

Paths with_joins(const problem::Problem& problem, Paths paths, int64_t work, double seconds) {
  Starts(problem, {work / 2, seconds / 2}).raise(paths.head);
  Starts(problem::reversed(problem), {work / 2, seconds / 2}).raise(paths.tail);
  return paths;
}

}  // namespace situate::bounds
