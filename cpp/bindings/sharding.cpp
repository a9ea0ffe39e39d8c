// Binds the choice of a sharding for every op.
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/interruption.h"
#include "problem/check.h"
#include "sharding/dominance.h"
#include "sharding/pruning.h"
#include "sharding/solver.h"
#include "sharding/stage_division.h"

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

Numpy<uint8_t> needed(const ShardingArrays& arrays) {
  arrays.check_arrays();
  std::vector<uint8_t> keep(arrays.cost.size(), 1);
  {
    nb::gil_scoped_release released;
    const sharding::Instance instance(arrays.arrays());
    // Where nothing fits, nothing is taken away: the search then shows it.
    if (!sharding::prune(instance, keep)) keep.assign(keep.size(), 1);
    sharding::drop_dominated(instance, keep);
  }
  const size_t count = keep.size();
  return to_numpy(std::move(keep), {count});
}

void run_round(sharding::Solver& solver, bool two_threads, double seconds) {
  Interruption interruption;
  {
    nb::gil_scoped_release released;
    const auto begin = Clock::now();
    solver.round(two_threads, [&] {
      const auto now = Clock::now();
      return interruption.heard(now) ||
             std::chrono::duration<double>(now - begin).count() > seconds;
    });
  }
  interruption.raise();
}

Numpy<int> strategies_of(const sharding::Solver& solver) {
  auto strategies = solver.strategies();
  const size_t count = strategies.size();
  return to_numpy(std::move(strategies), {count});
}

bool ascends_to(const Array<int64_t, 1>& sums, size_t count, size_t last) {
  return sums.size() == count && ascends(sums, last);
}

// Layers of a pipeline, which the division keeps.
struct LayerArrays {
  int64_t devices, most_replicas;
  double memory, sync_seconds;
  Array<int64_t, 1> tensor_degrees, data_degrees, first;
  Array<double, 1> seconds, weight, batch_bytes, fixed_bytes;
  Array<int64_t, 1> incident, neighbour, exchange;
  Array<double, 1> exchange_seconds;
  Array<uint8_t, 2> downsets;

  void check_arrays() const {
    const size_t layers = downsets.shape(1), options = seconds.size();
    check(layers > 0 && downsets.shape(0) > 1,
          "there must be layers, and downsets from none to all");
    check(devices > 0 && devices <= 100000 && most_replicas > 0, "there must be devices");
    check(tensor_degrees.size() > 0 && data_degrees.size() > 0 && data_degrees.data()[0] == 1,
          "there must be degrees, and 1 among those of data");
    for (const auto* degrees : {&tensor_degrees, &data_degrees})
      for (size_t k = 0; k < degrees->size(); ++k)
        check(
            degrees->data()[k] > (k ? degrees->data()[k - 1] : 0) && degrees->data()[k] <= devices,
            "degrees must ascend, and not exceed the devices");
    check(ascends_to(first, tensor_degrees.size() * layers + 1, options) &&
              weight.size() == options && batch_bytes.size() == options &&
              fixed_bytes.size() == options,
          "arrays over options differ in length");
    check(ascends_to(incident, layers + 1, neighbour.size()) &&
              ascends_to(exchange, options + 1, exchange_seconds.size()),
          "arrays over neighbours differ in length");
    for (size_t j = 0; j < neighbour.size(); ++j)
      check(neighbour.data()[j] >= 0 && neighbour.data()[j] < static_cast<int64_t>(layers),
            "a neighbour is no layer");
    for (size_t g = 0; g < tensor_degrees.size(); ++g)
      for (size_t v = 0; v < layers; ++v)
        for (int64_t k = first.data()[g * layers + v]; k < first.data()[g * layers + v + 1]; ++k)
          check(exchange.data()[k + 1] - exchange.data()[k] ==
                    incident.data()[v + 1] - incident.data()[v],
                "an option has seconds for each neighbour of its layer");
  }
  sharding::Layers arrays() const {
    return {static_cast<int64_t>(downsets.shape(1)),
            devices,
            most_replicas,
            memory,
            sync_seconds,
            view(tensor_degrees),
            view(data_degrees),
            view(first),
            view(seconds),
            view(weight),
            view(batch_bytes),
            view(fixed_bytes),
            view(incident),
            view(neighbour),
            view(exchange),
            view(exchange_seconds),
            view(downsets)};
  }
};

class StageDivision {
 public:
  using Outcome = sharding::StageDivision::Outcome;

  explicit StageDivision(const LayerArrays& arrays) : arrays_(arrays), division_(checked(arrays)) {}

  Outcome divide(double seconds, double time_limit) {
    Interruption interruption;
    const auto begin = Clock::now();
    const auto stopped = [&] {
      const auto now = Clock::now();
      return interruption.heard(now) ||
             std::chrono::duration<double>(now - begin).count() > time_limit;
    };
    Outcome outcome;
    {
      nb::gil_scoped_release released;
      outcome = division_.divide(seconds, stopped);
    }
    interruption.raise();
    return outcome;
  }
  const std::vector<sharding::Stage>& stages() const { return division_.stages(); }

 private:
  static sharding::Layers checked(const LayerArrays& arrays) {
    arrays.check_arrays();
    return arrays.arrays();
  }
  LayerArrays arrays_;
  sharding::StageDivision division_;
};

void bind_stages(nb::module_& module) {
  nb::class_<LayerArrays>(module, "LayerArrays",
                          R"(n layers with o options and s downsets.

devices: number of them.
most_replicas: of all stages together.
memory: bytes of a device.
sync_seconds: for each byte of weights, in endlessly many replicas.
tensor_degrees, data_degrees: degrees of parallelism, ascending.
first: (degrees * n + 1,) options before each tensor degree and layer.
seconds, weight, batch_bytes, fixed_bytes: (o,) of each option.
incident: (n + 1,) neighbours before each layer.
neighbour: their layers.
exchange: (o + 1,) numbers in exchange_seconds before each option.
exchange_seconds: of each option, with each neighbour of its layer.
downsets: (s, n) 1 for the layers of each, by size, from none to all.)")
      .def(nb::init<int64_t, int64_t, double, double, Array<int64_t, 1>, Array<int64_t, 1>,
                    Array<int64_t, 1>, Array<double, 1>, Array<double, 1>, Array<double, 1>,
                    Array<double, 1>, Array<int64_t, 1>, Array<int64_t, 1>, Array<int64_t, 1>,
                    Array<double, 1>, Array<uint8_t, 2>>(),
           nb::kw_only(), "devices"_a, "most_replicas"_a, "memory"_a, "sync_seconds"_a,
           "tensor_degrees"_a, "data_degrees"_a, "first"_a, "seconds"_a, "weight"_a,
           "batch_bytes"_a, "fixed_bytes"_a, "incident"_a, "neighbour"_a, "exchange"_a,
           "exchange_seconds"_a, "downsets"_a);
  nb::enum_<StageDivision::Outcome>(module, "DivisionOutcome", "The outcome of a division.")
      .value("divided", StageDivision::Outcome::kDivided)
      .value("impossible", StageDivision::Outcome::kImpossible)
      .value("unknown", StageDivision::Outcome::kUnknown)
      .value("stopped", StageDivision::Outcome::kStopped);
  nb::class_<sharding::Stage>(module, "Stage", "A stage: a downset without the rest.")
      .def_ro("downset", &sharding::Stage::downset)
      .def_ro("rest", &sharding::Stage::rest)
      .def_ro("tensor", &sharding::Stage::tensor)
      .def_ro("data", &sharding::Stage::data)
      .def_ro("options", &sharding::Stage::options);
  nb::class_<StageDivision>(module, "StageDivision", "Divides layers into stages.")
      .def(nb::init<const LayerArrays&>(), "arrays"_a)
      .def("divide", &StageDivision::divide, "seconds"_a, nb::kw_only(), "time_limit"_a,
           R"(Looks for stages of which none takes longer than `seconds`.

`unknown` if none are known, but some may exist; `stopped` at the time limit.)")
      .def("stages", &StageDivision::stages, nb::rv_policy::copy,
           "The stages of the last division, the first one first.");
}

}  // namespace

void bind_sharding(nb::module_& module) {
  bind_stages(module);
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
  module.def("needed", &needed, "arrays"_a,
             R"((s,) 1 for strategies to keep, 0 for the others.

A 0 stands in no plan within the limit, or another strategy of the same op costs no more, whatever
the neighbours choose, and uses no more memory at any time.)");
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
      .def("round", &run_round, nb::kw_only(), "two_threads"_a, "seconds"_a,
           R"(One round, which ends early after so many seconds.

Its result does not depend on the number of threads.)")
      .def("strategies", &strategies_of,
           "(n,) best strategies so far, each counted from its op's first.")
      .def_prop_ro("value", &sharding::Solver::value, "Their cost; forbidden ones count as 1e15.")
      .def_prop_ro("excess", &sharding::Solver::excess,
                   "Bytes that they need beyond the limit at their peak.")
      .def_prop_ro("bound", &sharding::Solver::bound,
                   "No strategies within the limit cost less, but for rounding.");
}

}  // namespace situate::bindings
