// Binds what bounds compute on graphs.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bounds/joins.h"
#include "bounds/least_live.h"
#include "bounds/parted.h"
#include "bounds/paths.h"
#include "problem/check.h"
#include "problem/problem.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace situate::bindings {
namespace {

using bounds::Held;
using bounds::LeastLive;
using problem::check;

bool all_below(std::span<const int32_t> items, size_t limit) {
  return std::all_of(items.begin(), items.end(),
                     [&](int32_t i) { return i >= 0 && static_cast<size_t>(i) < limit; });
}

struct Dependencies {
  Array<int32_t, 1> before, after;
  Array<int32_t, 2> orders;

  void check_arrays() const {
    const size_t n = orders.shape(1), count = orders.shape(0);
    check(n > 0 && count > 0 && before.size() == after.size() && all_below(view(before), n) &&
              all_below(view(after), n),
          "pairs of ops, and at least one order of them");
    std::vector<int32_t> place(n);
    for (size_t i = 0; i < count; ++i) check_order(orders.data() + i * n, place);
  }

 private:
  void check_order(const int32_t* order, std::vector<int32_t>& place) const {
    const size_t n = place.size();
    check(all_below({order, n}, n), "an order must be a permutation");
    std::fill(place.begin(), place.end(), -1);
    for (size_t i = 0; i < n; ++i) place[order[i]] = static_cast<int32_t>(i);
    check(std::find(place.begin(), place.end(), -1) == place.end(),
          "an order must be a permutation");
    for (size_t e = 0; e < before.size(); ++e)
      check(place[before.data()[e]] < place[after.data()[e]], "an order must be topological");
  }
};

struct HeldTensors {
  Array<int64_t, 1> size;
  Array<int32_t, 1> producer, edge_tensor, edge_consumer;
  Array<uint8_t, 1> output;

  Held held(std::span<const int64_t> workspace) const {
    const int m = static_cast<int>(size.size());
    return {view(size),
            view(producer),
            {m, view(edge_tensor), view(edge_consumer)},
            view(output),
            workspace};
  }

  void check_arrays(size_t n) const {
    const size_t m = size.size();
    check(producer.size() == m && output.size() == m && edge_tensor.size() == edge_consumer.size(),
          "arrays over tensors differ in length");
    check(all_below(view(producer), n) && all_below(view(edge_tensor), m) &&
              all_below(view(edge_consumer), n),
          "tensors and ops must be there");
  }
};

int64_t least_live(const Dependencies& graph, const HeldTensors& tensors,
                   const Array<int64_t, 1>& workspace, const Array<uint8_t, 1>& runs, int64_t work,
                   double seconds) {
  const size_t n = graph.orders.shape(1);
  check(workspace.size() == n && runs.size() == n, "arrays over ops differ in length");
  graph.check_arrays();
  tensors.check_arrays(n);
  problem::check_bytes({view(tensors.size)});
  check(std::all_of(workspace.data(), workspace.data() + n,
                    [](int64_t bytes) { return bytes >= 0 && bytes <= problem::most_bytes; }),
        "workspaces are 0 to 2^62 bytes");
  nb::gil_scoped_release released;
  LeastLive live(static_cast<int>(n), view(graph.before), view(graph.after));
  return live.least(tensors.held(view(workspace)), view(graph.orders), view(runs), work, seconds);
}

using OnDevices = std::tuple<Numpy<double>, Numpy<double>>;

OnDevices on_devices(const problem::Problem& p, bounds::Paths&& paths) {
  const auto n = static_cast<size_t>(p.n), d = static_cast<size_t>(p.d);
  return std::make_tuple(to_numpy(std::move(paths.head), {n, d}),
                         to_numpy(std::move(paths.tail), {n, d}));
}

OnDevices longest_paths(const problem::Problem& p, bool free) {
  bounds::Paths paths;
  {
    nb::gil_scoped_release released;
    paths = bounds::longest_paths(p, free);
  }
  return on_devices(p, std::move(paths));
}

bounds::Paths paths_of(const problem::Problem& p, const Array<double, 2>& head,
                       const Array<double, 2>& tail) {
  const auto n = static_cast<size_t>(p.n), d = static_cast<size_t>(p.d);
  check(has_shape(head, {n, d}) && has_shape(tail, {n, d}), "heads and tails are (ops, devices)");
  return {copy_of(head), copy_of(tail)};
}

OnDevices with_joins(const problem::Problem& p, const Array<double, 2>& head,
                     const Array<double, 2>& tail, int64_t work, double seconds) {
  auto paths = paths_of(p, head, tail);
  {
    nb::gil_scoped_release released;
    paths = bounds::with_joins(p, std::move(paths), work, seconds);
  }
  return on_devices(p, std::move(paths));
}

Numpy<double> parted_paths(const problem::Problem& p, const Array<double, 2>& head,
                           const Array<double, 2>& tail) {
  const auto paths = paths_of(p, head, tail);
  std::vector<double> through;
  {
    nb::gil_scoped_release released;
    through = bounds::parted(p, paths);
  }
  return to_numpy(std::move(through), {p.consumers.size()});
}

}  // namespace

void bind_bounds(nb::module_& module) {
  nb::class_<Dependencies>(module, "Dependencies", R"(Which of n ops wait for which.

before, after: (e,), (e,) an op and one that waits for it.
orders: (k, n) some topological orders, at least one.)")
      .def(nb::init<Array<int32_t, 1>, Array<int32_t, 1>, Array<int32_t, 2>>(), nb::kw_only(),
           "before"_a, "after"_a, "orders"_a);
  nb::class_<HeldTensors>(module, "HeldTensors", R"(The m tensors that count, and who reads them.

size, producer: (m,) bytes, and the op that makes it.
edge_tensor, edge_consumer: (e,), (e,) a tensor and an op that reads it.
output: (m,) 1 where the tensor is kept to the end of the step.)")
      .def(nb::init<Array<int64_t, 1>, Array<int32_t, 1>, Array<int32_t, 1>, Array<int32_t, 1>,
                    Array<uint8_t, 1>>(),
           nb::kw_only(), "size"_a, "producer"_a, "edge_tensor"_a, "edge_consumer"_a, "output"_a);
  module.def("least_live", &least_live, "dependencies"_a, "tensors"_a, nb::kw_only(), "workspace"_a,
             "runs"_a, "work"_a, "seconds"_a,
             R"(Bytes that are live at once in every schedule, while some op runs.

workspace: (n,) bytes of an op while it runs.
runs: (n,) 1 for the ops that count as running.
work, seconds: edges of networks to look at, and when to end; fewer give fewer bytes.)");
  module.def("longest_paths", &longest_paths, "problem"_a, nb::kw_only(), "free"_a,
             R"(Seconds (n, d), (n, d) before an op begins and after it ends on a device.

Every op on the way runs where the path is shortest; infinite where an op may not run.

free: whether transfers take no time.)");
  module.def("with_joins", &with_joins, "problem"_a, "head"_a, "tail"_a, nb::kw_only(), "work"_a,
             "seconds"_a,
             R"(Such seconds that are no less where the results of several ops meet.

head, tail: (n, d), (n, d) of `longest_paths`.
work, seconds: edges to look at, and when to end; fewer raise fewer of them.)");
  module.def("parted_paths", &parted_paths, "problem"_a, "head"_a, "tail"_a,
             R"(Seconds (e,) of the longest path over each of the edges to consumers.

Their ops are on the two devices where that is shortest; infinite where they have to share one.

head, tail: (n, d), (n, d) seconds before an op begins and after it ends on a device.)");
}

}  // namespace situate::bindings
