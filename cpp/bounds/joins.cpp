#include "bounds/joins.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <utility>

#include "bounds/device_kinds.h"
#include "problem/reversed.h"

namespace situate::bounds {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
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
        fastest_(p_.n, never),
        first_(p_.n, never),
        beside_(p_.n),
        apart_(p_.n),
        reached_(p_.n, -1),
        queued_(p_.n, -1) {
    for (int op = 0; op < p_.n; ++op) take_seconds(op);
  }

  // Makes heads (n, d) as late as they are found to be.
  void raise(std::vector<double>& heads) {
    size_t links = 0;
    for (const auto& to_kind : kinds_.links_to) links += to_kind.size();
    if (!effort_.spend(static_cast<int64_t>(p_.consumers.size() * links))) return;
    part_edges();
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
      first_[op] = *std::min_element(start, start + kinds_.count());
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
    fastest_[op] = *std::min_element(seconds, seconds + kinds_.count());
  }

  void part_edges() {
    parted_.assign(p_.consumers.size(), never);
    for (int tensor = 0; tensor < p_.m; ++tensor)
      for (int edge = p_.consumer_start[tensor]; edge < p_.consumer_start[tensor + 1]; ++edge)
        for (int kind = 0; kind < kinds_.count(); ++kind) {
          const int b = p_.consumers[edge];
          const double slower = row(seconds_, b)[kind] - fastest_[b];
          if (p_.unit[b] == p_.unit[p_.producer[tensor]] || slower == never) continue;
          parted_[edge] = std::min(parted_[edge], sent(tensor, kind) + slower);
        }
  }

  // What it takes, beside the fastest time of its producer, to send a tensor to a kind of device.
  double sent(int tensor, int kind) {
    const int a = p_.producer[tensor];
    double least = never;
    for (const Link& link : kinds_.links_to[kind]) {
      const double slower = row(seconds_, a)[link.source_kind] - fastest_[a];
      if (slower < least)
        least = std::min(least, slower + p_.transfer_seconds(tensor, link.source, link.target));
    }
    return least;
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
    beside_[op] = 0;
    apart_[op] = never;
    queue_inputs(op);
    while (!waiting_.empty()) {
      std::pop_heap(waiting_.begin(), waiting_.end());
      const int a = p_.order[waiting_.back()];
      waiting_.pop_back();
      if (!take_ways(a, op, kind)) break;
      if (first_[a] + apart_[a] <= start) continue;
      reached_[a] = mark_;
      late_.push_back({first_[a] + apart_[a], a});
      queue_inputs(a);
    }
    waiting_.clear();
  }

  // From the start of `a` to that of `op`; false if the effort has ended.
  bool take_ways(int a, int op, int kind) {
    double beside = 0, apart = p_.unit[a] == p_.unit[op] ? never : 0;
    int64_t edges = 1;
    for (const int tensor : p_.outputs_of(a))
      for (int edge = p_.consumer_start[tensor]; edge < p_.consumer_start[tensor + 1]; ++edge) {
        const int b = p_.consumers[edge];
        ++edges;
        if (reached_[b] != mark_) continue;
        const double between = b == op ? sent(tensor, kind) : parted_[edge];
        beside = std::max(beside, beside_[b]);
        apart = std::max(apart, std::min(beside_[b] + between, apart_[b]));
      }
    beside_[a] = fastest_[a] + beside;
    apart_[a] = fastest_[a] + apart;
    return effort_.spend(edges);
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
  std::vector<double> fastest_, first_;  // n: the least of each
  // Of each of `consumers`: what it takes, beside the fastest times of both ops, to have them on
  // two devices.
  std::vector<double> parted_;
  // Of the op and the kind that are looked at: n, from the start of each op to that of this one,
  // the longest path, and that with it on another device; marks of those for which these are known,
  // and of those that have been queued.
  std::vector<double> beside_, apart_;
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
