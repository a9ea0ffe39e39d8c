// Binds the coarsening of the graph of units into groups, and its bisection.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "partition/coarsening.h"
#include "partition/kernighan_lin.h"
#include "problem/check.h"
#include "problem/problem.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace situate::bindings {
namespace {

using partition::Coarsening;
using problem::check;

struct UnitGraph {
  Array<int64_t, 1> start, neighbour, bytes;
  Array<double, 1> seconds;
  Array<int64_t, 1> persistent, capacity;
  Array<uint8_t, 2> allowed;

  void check_arrays() const {
    const size_t units = seconds.size(), edges = neighbour.size();
    check(start.size() == units + 1 && persistent.size() == units && bytes.size() == edges &&
              has_shape(allowed, {units, capacity.size()}) && capacity.size() > 0,
          "arrays over units, edges or devices differ in length");
    problem::check_bytes({view(persistent)});
    check(start.data()[0] == 0 && start.data()[units] == static_cast<int64_t>(edges) &&
              std::is_sorted(start.data(), start.data() + units + 1) &&
              std::all_of(neighbour.data(), neighbour.data() + edges,
                          [&](int64_t u) { return u >= 0 && u < static_cast<int64_t>(units); }),
          "rows must follow each other and name units");
  }
  partition::WeightedUnits weighted() const {
    return {static_cast<int>(seconds.size()),
            static_cast<int>(capacity.size()),
            view(start),
            view(neighbour),
            view(bytes),
            view(seconds),
            view(persistent),
            view(capacity),
            view(allowed)};
  }
};

Numpy<int64_t> coarsen(const UnitGraph& graph, const Array<int64_t, 1>& counts, int64_t fine,
                       double most) {
  const size_t units = graph.seconds.size(), partitions = counts.size();
  check(most > 1 && fine > 0 &&
            std::all_of(counts.data(), counts.data() + partitions,
                        [](int64_t count) { return count > 0 && count <= INT32_MAX; }),
        "at least one group, longer than the average");
  graph.check_arrays();
  nb::gil_scoped_release released;
  Coarsening coarsening(graph.weighted());
  if (fine < static_cast<int64_t>(units)) coarsening.reach(static_cast<int>(fine), most);
  std::vector<int64_t> labels;
  labels.reserve(partitions * units);
  for (size_t i = 0; i < partitions; ++i) {
    auto coarse = coarsening;
    coarse.reach(static_cast<int>(counts.data()[i]), most);
    const auto reached = coarse.labels();
    labels.insert(labels.end(), reached.begin(), reached.end());
  }
  nb::gil_scoped_acquire acquired;
  return to_numpy(std::move(labels), {partitions, units});
}

Numpy<int8_t> bisect(const UnitGraph& graph, const Array<int8_t, 1>& side,
                     const Array<int64_t, 1>& order, double share) {
  const size_t units = graph.seconds.size();
  graph.check_arrays();
  check(side.size() == units && order.size() == units, "a side and a place for each unit");
  check(std::all_of(side.data(), side.data() + units, [](int8_t s) { return s >= -1 && s <= 2; }) &&
            share >= 0 && share <= 1,
        "sides are -1 to 2, and a share is 0 to 1");
  std::vector<uint8_t> seen(units);
  for (const int64_t unit : view(order))
    check(unit >= 0 && unit < static_cast<int64_t>(units) && !seen[unit]++,
          "the order names every unit once");
  nb::gil_scoped_release released;
  const std::vector<double> weight(graph.bytes.data(), graph.bytes.data() + graph.bytes.size());
  partition::KernighanLin halves(
      {view(graph.start), view(graph.neighbour), weight, view(graph.seconds)}, view(side), share,
      view(order));
  halves.improve();
  auto found = std::move(halves).side();
  nb::gil_scoped_acquire acquired;
  return to_numpy(std::move(found), {units});
}

}  // namespace

void bind_partition(nb::module_& module) {
  nb::class_<UnitGraph>(module, "UnitGraph",
                        R"(The u units of a problem and what flows between them.

start, neighbour, bytes: (u + 1,), (e,), (e,) compressed rows, symmetric and without loops: unit i
    exchanges bytes[k] with neighbour[k] for k in start[i] to start[i + 1].
seconds, persistent: (u,) work and bytes of a unit.
capacity: (d,) bytes.
allowed: (u, d), 1 where a unit may run.)")
      .def(nb::init<Array<int64_t, 1>, Array<int64_t, 1>, Array<int64_t, 1>, Array<double, 1>,
                    Array<int64_t, 1>, Array<int64_t, 1>, Array<uint8_t, 2>>(),
           nb::kw_only(), "start"_a, "neighbour"_a, "bytes"_a, "seconds"_a, "persistent"_a,
           "capacity"_a, "allowed"_a);
  module.def(
      "coarsen", &coarsen, "graph"_a, nb::kw_only(), "counts"_a, "fine"_a, "most"_a,
      R"(Labels (c, u) of c partitions into counts (c,) groups, the same label for units of one
group.

fine: groups of the partition that all others are made of.
most: seconds of a group, in averages over groups, that none exceeds where that can be.)");
  module.def("bisect", &bisect, "graph"_a, nb::kw_only(), "side"_a, "order"_a, "share"_a,
             R"(Sides (u,), 0 or 1, of units between which few bytes flow, by Kernighan and Lin.

side: (u,) -1 for units that are free to move, 0 or 1 for those that are not, 2 for those left out.
order: (u,) in which free units are put on side 0 at first.
share: of the units' seconds, what side 0 is to have.)");
}

}  // namespace situate::bindings
