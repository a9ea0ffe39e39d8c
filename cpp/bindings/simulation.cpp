// Binds the simulator and the makespan of atomic calls.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/checks.h"
#include "bindings/names.h"
#include "bindings/transfers.h"
#include "simulation/atomic_calls.h"
#include "simulation/blocking/blocking_transfers.h"
#include "simulation/simulator.h"
#include "threads/for_each.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace situate::bindings {
namespace {

using sim::Decoder;
using sim::Simulator;

using TransferPriorities = std::optional<Array<float, 3>>;

void check_finite(std::span<const float> priorities) {
  int32_t infinite = 0;
  for (const float x : priorities) infinite |= !(std::abs(x) <= std::numeric_limits<float>::max());
  check(!infinite, "priorities must be finite");
}

// Checks the priorities of `count` decisions.
void check_priorities(const Problem& p, size_t count, std::span<const float> of_ops,
                      const TransferPriorities& of_transfers) {
  check_finite(of_ops);
  if (!of_transfers) return;
  check(has_shape(*of_transfers, {count, static_cast<size_t>(p.m), static_cast<size_t>(p.d)}),
        "transfer priorities must be decisions x tensors x devices");
  check_finite(view(*of_transfers));
}

const float* row_of(const TransferPriorities& priorities, const Problem& p, size_t row) {
  return priorities ? priorities->data() + row * static_cast<size_t>(p.m) * p.d : nullptr;
}

// Calls `run` with a simulator, every decision and its number.
template <class Run>
void for_each_decision(const Problem& p, const Array<int32_t, 2>& placement,
                       const Array<float, 2>& priority, const TransferPriorities& transfer_priority,
                       int threads, const Run& run) {
  const size_t count = placement.shape(0), n = static_cast<size_t>(p.n);
  check(placement.shape(1) == n && has_shape(priority, {count, n}),
        "placements and priorities must both be k x ops");
  check_priorities(p, count, view(priority), transfer_priority);
  check_devices(p, view(placement));
  check(threads > 0, "there must be a thread");
  nb::gil_scoped_release released;
  threads::for_each(count, threads, [&] {
    return [&, simulator = std::make_unique<Simulator>(p)](size_t k) {
      const sim::Decision decision{placement.data() + k * n, priority.data() + k * n,
                                   row_of(transfer_priority, p, k)};
      run(*simulator, decision, k);
    };
  });
}

auto makespans(const Problem& p, const Array<int32_t, 2>& placement,
               const Array<float, 2>& priority, const TransferPriorities& transfer_priority,
               const std::string& decoder, int threads) {
  const size_t count = placement.shape(0);
  const Decoder by = decoder_named(decoder);
  std::vector<double> makespan(count);
  for_each_decision(
      p, placement, priority, transfer_priority, threads,
      [&](Simulator& simulator, const auto& it, size_t k) { makespan[k] = simulator.run(it, by); });
  return to_numpy(std::move(makespan), {count});
}

auto evaluate(const Problem& p, const Array<int32_t, 2>& placement, const Array<float, 2>& priority,
              const TransferPriorities& transfer_priority, const std::string& decoder,
              int threads) {
  const size_t count = placement.shape(0), d = static_cast<size_t>(p.d);
  const Decoder by = decoder_named(decoder);
  std::vector<double> makespan(count);
  std::vector<int64_t> peak(count * d);
  for_each_decision(p, placement, priority, transfer_priority, threads,
                    [&](Simulator& simulator, const auto& it, size_t k) {
                      makespan[k] = simulator.run(it, by, peak.data() + k * d);
                    });
  return std::make_tuple(to_numpy(std::move(makespan), {count}),
                         to_numpy(std::move(peak), {count, d}));
}

auto schedule(const Problem& p, const Array<int32_t, 1>& placement, const Array<float, 1>& priority,
              const TransferPriorities& transfer_priority, const std::string& decoder) {
  const auto n = static_cast<size_t>(p.n);
  check(placement.size() == n && priority.size() == n,
        "a placement and its priorities have one entry an op");
  check_priorities(p, 1, view(priority), transfer_priority);
  check_devices(p, view(placement));
  Simulator simulator(p);
  std::vector<int64_t> peak(p.d);
  const double makespan =
      simulator.schedule({placement.data(), priority.data(), row_of(transfer_priority, p, 0)},
                         decoder_named(decoder), peak.data());
  const auto& timeline = simulator.timeline();
  std::vector<int32_t> tensor, source, target;
  for (const auto& transfer : timeline.transfers()) {
    tensor.push_back(transfer.tensor);
    source.push_back(transfer.source);
    target.push_back(transfer.target);
  }
  const size_t k = tensor.size();
  const auto times = [&](const std::vector<double>& of_items, size_t first, size_t count) {
    return to_numpy(std::vector<double>(of_items.begin() + first, of_items.begin() + first + count),
                    {count});
  };
  auto taken = timeline.taken;
  const size_t items = taken.size();
  return std::make_tuple(times(timeline.start, 0, n), times(timeline.end, 0, n),
                         to_numpy(std::move(tensor), {k}), to_numpy(std::move(source), {k}),
                         to_numpy(std::move(target), {k}), times(timeline.start, n, k),
                         times(timeline.end, n, k), to_numpy(std::move(taken), {items}), makespan,
                         to_numpy(std::move(peak), {static_cast<size_t>(p.d)}));
}

auto blocking_transfers(const Problem& p, const Array<int32_t, 1>& placement,
                        const Array<int32_t, 1>& order) {
  check(p.blocking, places_where_blocking);
  check_placement(p, view(placement));
  problem::check_order(p, view(order));
  return arrays_of(sim::blocking_transfers(sim::OrderedPlacement(p, placement.data(), order.data()),
                                           sim::EarlyTransfers(p)));
}

auto atomic_calls(const Problem& p, const Array<int32_t, 1>& placement) {
  check_placement(p, view(placement));
  auto calls = sim::run_calls(p, placement.data());
  const size_t d = p.d, n = p.n;
  return std::make_tuple(calls.makespan, to_numpy(std::move(calls.begin), {d}),
                         to_numpy(std::move(calls.load), {d}),
                         to_numpy(std::move(calls.op_end), {n}));
}

}  // namespace

void bind_simulation(nb::module_& module) {
  module.def("makespans", &makespans, "problem"_a, "placement"_a, "priority"_a,
             "transfer_priority"_a.none(), "decoder"_a, "threads"_a,
             "Makespans (k,) of k decisions, as by evaluate, without the time that peaks take.");
  module.def("evaluate", &evaluate, "problem"_a, "placement"_a, "priority"_a,
             "transfer_priority"_a.none(), "decoder"_a, "threads"_a,
             R"(Makespans (k,) and peaks (k, d) in bytes of k decisions.

placement, priority: (k, n).
transfer_priority: (k, m, d), or None for the best consumer's priority.
decoder: eager or serial.)");
  module.def("schedule", &schedule, "problem"_a, "placement"_a, "priority"_a,
             "transfer_priority"_a.none(), "decoder"_a,
             R"(The schedule of one decision: start and end (n,) of the ops; tensor, source, target,
start and end (t,) of the transfers; all items but signals (i,) in the order in which they were
taken, transfers counted from n on; makespan; peaks (d,) in bytes.

placement, priority: (n,).
transfer_priority: (1, m, d), or None.)");
  module.def(
      "blocking_transfers", &blocking_transfers, "problem"_a, "placement"_a, "order"_a,
      R"(The transfers of a placement (n,) whose ops go in a topological order (n,), blocking and no
signals, in their own order: tensor, target device and the place (k,) in the order of the op that
each is just before. One that takes no time goes with any that its devices stop for.)");
  module.def(
      "atomic_calls", &atomic_calls, "problem"_a, "placement"_a,
      R"(The schedule of a placement (n,) under atomic rules: makespan, begin and load (d,) of the
devices' calls, and when the ops' results are there (n,).)");
}

}  // namespace situate::bindings
