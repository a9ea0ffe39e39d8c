// Binds the orders of ops that use little memory on one device.
#include <nanobind/stl/optional.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "problem/check.h"
#include "problem/problem.h"
#include "search/memory_orders/heavy_paths.h"
#include "search/memory_orders/regrouping.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace situate::bindings {
namespace {

using problem::check;
using problem::Problem;

auto heavy_path_order(const Problem& p, bool backwards) {
  std::vector<int32_t> order;
  {
    nb::gil_scoped_release released;
    using search::Direction;
    order = search::heavy_path_order(p, backwards ? Direction::backwards : Direction::forwards);
  }
  return to_numpy(std::move(order), {static_cast<size_t>(p.n)});
}

auto regrouped_order(const Problem& p, const Array<int32_t, 1>& order, int64_t target, int64_t sets,
                     double seconds) {
  problem::check_order(p, view(order));
  std::vector<int32_t> found;
  {
    nb::gil_scoped_release released;
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    const auto ended = [&] {
      return std::chrono::duration<double>(clock::now() - begin).count() >= seconds;
    };
    found = search::regrouped_order(p, view(order), target, {sets, ended});
  }
  return to_numpy(std::move(found), {static_cast<size_t>(p.n)});
}

std::optional<int64_t> least_order_peak(const Problem& p, int64_t sets) {
  check(sets >= 0, "no fewer than no sets");
  nb::gil_scoped_release released;
  return search::least_peak(p, sets);
}

}  // namespace

void bind_memory_orders(nb::module_& module) {
  module.def("heavy_path_order", &heavy_path_order, "problem"_a, "backwards"_a,
             R"(Topological order (n,) by depth along the heaviest paths.

backwards: found from the end of the step.)");
  module.def("regrouped_order", &regrouped_order, "problem"_a, "order"_a, nb::kw_only(), "target"_a,
             "sets"_a, "seconds"_a,
             R"(Topological order (n,) that uses no more bytes at its fullest moment on one device.

order: (n,) a topological one.
target: bytes of tensors and workspaces that are few enough.
sets, seconds: sets of chunks of ops to look at, and when to end.)");
  module.def(
      "least_order_peak", &least_order_peak, "problem"_a, "sets"_a,
      R"(Bytes of tensors and workspaces at the fullest moment of the best order on one device.

None where there are more than 64 ops, or so many sets of them are not enough to prove it.)");
}

}  // namespace situate::bindings
