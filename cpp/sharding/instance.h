// A sharding problem: one strategy for each op, with costs of ops, of pairs of ops, and a limit of
// the memory in use at any time (IOPDDL, ASPLOS 2025).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace situate::sharding {

// Costs from this one on mark strategies that cannot stand together.
inline constexpr double kForbidden = 1e15;

struct Arrays {
  std::span<const int64_t> first;           // (n + 1,) strategies before each op
  std::span<const double> cost;             // (s,)
  std::span<const int64_t> part;            // (n + 1,) parts of memory before each op
  std::span<const int64_t> begin, end;      // (p,) the time that a part is in memory
  std::span<const int64_t> usage;           // bytes of a part for each strategy of its op
  std::span<const int64_t> source, target;  // (e,) ops of an edge, source below target
  std::span<const int64_t> table;           // (e + 1,) numbers before each edge's table
  std::span<const double> pair_cost;        // tables, a row for each strategy of the source
  int64_t limit;                            // bytes
};

// What an op holds in memory for a time: bytes for each of its strategies.
struct Part {
  int begin, end;
  const int64_t* usage;
};

// One direction of an edge, as the op at its near end sees it.
struct Neighbour {
  int op;
  int edge;
  int reverse;         // number of the other direction
  const double* rows;  // (strategies of the near op, strategies of the far op)
};

class Instance {
 public:
  explicit Instance(const Arrays& arrays);

  int ops() const { return ops_; }
  int times() const { return times_; }
  int64_t limit() const { return limit_; }
  int strategies(int op) const { return static_cast<int>(first_[op + 1] - first_[op]); }
  int64_t first(int op) const { return first_[op]; }
  const double* cost(int op) const { return &cost_[first_[op]]; }
  std::span<const Part> parts(int op) const {
    return {parts_.data() + part_[op], static_cast<size_t>(part_[op + 1] - part_[op])};
  }
  std::span<const Neighbour> neighbours(int op) const {
    return {neighbours_.data() + row_[op], static_cast<size_t>(row_[op + 1] - row_[op])};
  }
  // Number of the first of an op's neighbours, over all ops.
  int64_t row(int op) const { return row_[op]; }
  int edges() const { return edges_; }
  int64_t table_numbers() const { return static_cast<int64_t>(forward_.size()); }
  int most_strategies() const { return most_strategies_; }

  double value(std::span<const int> chosen) const;

 private:
  int ops_, edges_, times_ = 0, most_strategies_ = 0;
  int64_t limit_;
  std::vector<int64_t> first_, part_, usage_, row_;
  std::vector<double> cost_, forward_, backward_;
  // Of times only those at which a part begins count; the most memory is in use at one of them.
  std::vector<Part> parts_;
  std::vector<Neighbour> neighbours_;
};

}  // namespace situate::sharding
