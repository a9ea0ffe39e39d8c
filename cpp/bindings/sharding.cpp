// Binds the choice of a sharding for every op.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "problem/check.h"
#include "sharding/dominance.h"
#include "sharding/solver.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace situate::bindings {
namespace {

using problem::check;

bool ascends(const Array<int64_t, 1>& sums, size_t last) {
  return sums.data()[0] == 0 && sums.data()[sums.size() - 1] == static_cast<int64_t>(last) &&
         std::is_sorted(sums.data(), sums.data() + sums.size());
}

struct ShardingArrays {
  Array<int64_t, 1> first;
  Array<double, 1> cost;
  Array<int64_t, 1> part, begin, end, usage, source, target, table;
  Array<double, 1> pair_cost;
  int64_t limit;

  void check_arrays() const {
    const size_t edges = source.size(), parts = begin.size();
    check(first.size() > 0 && ascends(first, cost.size()) && part.size() == first.size() &&
              ascends(part, parts) && end.size() == parts,
          "arrays over ops, strategies or parts differ in length");
    check(target.size() == edges && table.size() == edges + 1 && ascends(table, pair_cost.size()),
          "arrays over edges differ in length");
    int64_t bytes = 0;
    const auto ops = static_cast<int64_t>(first.size() - 1);
    for (int64_t i = 0; i < ops; ++i) {
      check(strategies(i) > 0, "every op needs a strategy");
      bytes += strategies(i) * (part.data()[i + 1] - part.data()[i]);
    }
    check(bytes == static_cast<int64_t>(usage.size()), "a part has bytes for each strategy");
    for (size_t k = 0; k < edges; ++k) {
      const int64_t a = source.data()[k], b = target.data()[k];
      check(a >= 0 && a < b && b < ops, "an edge joins two ops in order");
      check(table.data()[k + 1] - table.data()[k] == strategies(a) * strategies(b),
            "a table has a cost for each pair of strategies");
    }
  }
  int64_t strategies(int64_t op) const { return first.data()[op + 1] - first.data()[op]; }
  sharding::Arrays arrays() const {
    return {view(first),  view(cost),   view(part),  view(begin),     view(end), view(usage),
            view(source), view(target), view(table), view(pair_cost), limit};
  }
};

Numpy<uint8_t> undominated(const ShardingArrays& arrays) {
  arrays.check_arrays();
  std::vector<uint8_t> keep;
  {
    nb::gil_scoped_release released;
    keep = sharding::undominated(sharding::Instance(arrays.arrays()));
  }
  const size_t count = keep.size();
  return to_numpy(std::move(keep), {count});
}

void run_round(sharding::Solver& solver, bool two_threads) {
  nb::gil_scoped_release released;
  solver.round(two_threads);
}

Numpy<int> strategies_of(const sharding::Solver& solver) {
  auto strategies = solver.strategies();
  const size_t count = strategies.size();
  return to_numpy(std::move(strategies), {count});
}

}  // namespace

void bind_sharding(nb::module_& module) {
  nb::class_<ShardingArrays>(module, "ShardingArrays",
                             R"(A problem of n ops with s strategies and e edges.

first: (n + 1,) strategies before each op.
cost: (s,) cost of a strategy.
part: (n + 1,) parts of memory before each op.
begin, end: (p,) times between which a part is in memory.
usage: bytes of each part, for each strategy of its op.
source, target: (e,) ops of an edge, source before target; each pair once.
table: (e + 1,) numbers in pair_cost before each edge's table, which has a row for each strategy of
    the source.
limit: bytes in memory at any time.)")
      .def(nb::init<Array<int64_t, 1>, Array<double, 1>, Array<int64_t, 1>, Array<int64_t, 1>,
                    Array<int64_t, 1>, Array<int64_t, 1>, Array<int64_t, 1>, Array<int64_t, 1>,
                    Array<int64_t, 1>, Array<double, 1>, int64_t>(),
           nb::kw_only(), "first"_a, "cost"_a, "part"_a, "begin"_a, "end"_a, "usage"_a, "source"_a,
           "target"_a, "table"_a, "pair_cost"_a, "limit"_a);
  module.def("undominated", &undominated, "arrays"_a,
             R"((s,) 1 for strategies to keep, 0 for the others.

Another strategy of the same op costs no more than a 0, whatever the neighbours choose, and uses
no more memory at any time.)");
  nb::class_<sharding::Solver>(module, "ShardingSolver",
                               "Rounds of lower bounds and search, side by side.")
      .def(
          "__init__",
          [](sharding::Solver* self, const ShardingArrays& arrays, uint64_t seed) {
            arrays.check_arrays();
            nb::gil_scoped_release released;
            new (self) sharding::Solver(arrays.arrays(), seed);
          },
          "arrays"_a, nb::kw_only(), "seed"_a)
      .def("round", &run_round, nb::kw_only(), "two_threads"_a,
           "One round. Its result does not depend on the number of threads.")
      .def("strategies", &strategies_of,
           "(n,) best strategies so far, each counted from its op's first.")
      .def_prop_ro("value", &sharding::Solver::value, "Their cost; forbidden ones count as 1e15.")
      .def_prop_ro("excess", &sharding::Solver::excess,
                   "Bytes that they need beyond the limit at their peak.")
      .def_prop_ro("bound", &sharding::Solver::bound,
                   "No strategies within the limit cost less, but for rounding.");
}

}  // namespace situate::bindings
