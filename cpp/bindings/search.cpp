// Binds the list rules and the chains of annealing.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/chains.h"
#include "bindings/checks.h"
#include "bindings/names.h"
#include "bindings/transfers.h"
#include "problem/reversed.h"
#include "search/annealer.h"
#include "search/deadline.h"
#include "search/fills/fill_in_turn.h"
#include "search/fills/weight_ops.h"
#include "search/items/item_orders.h"
#include "search/justification.h"
#include "search/list_rules.h"
#include "search/load_annealer.h"
#include "search/memory_constrained.h"
#include "search/placed/placed_orders.h"
#include "search/windows/window_search.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace situate::bindings {
namespace {

using search::Annealer;
using search::Blocks;
using search::Deadline;
using search::Goal;
using search::Justification;
using search::LoadAnnealer;
using search::Moves;
using search::PeakMean;
using search::PlacedOrders;
using search::WindowSearch;

constexpr double endless = std::numeric_limits<double>::infinity();
constexpr double most_moves_an_op = 1000;

template <typename Rule>
auto listed(Rule rule, const Problem& p, double room, double seconds) {
  check(room >= 0 && room <= 1, "room is a share of memory: 0 to 1");
  search::Listed result;
  {
    nb::gil_scoped_release released;
    result = rule(p, room, Deadline(seconds));
  }
  const size_t n = result.order.size();
  return std::make_tuple(to_numpy(std::move(result.placement), {n}),
                         to_numpy(std::move(result.order), {n}));
}

auto memory_constrained(const Problem& p, double room, const Array<uint8_t, 1>& preferred,
                        const Array<int32_t, 1>& favourite, double seconds) {
  check(preferred.size() == static_cast<size_t>(p.d), "each device is preferred or not");
  check(favourite.size() == static_cast<size_t>(p.n) &&
            std::all_of(favourite.data(), favourite.data() + favourite.size(),
                        [&](int32_t child) { return child >= -1 && child < p.n; }),
        "each op has a favourite child, or -1");
  const auto rule = [&](const Problem& problem, double share, Deadline deadline) {
    return search::MemoryConstrained(problem, share, view(preferred), view(favourite))
        .listed(deadline);
  };
  return listed(rule, p, room, seconds);
}

using Annealers = Chains<Annealer>;
using LoadAnnealers = Chains<LoadAnnealer>;
using Justifications = Chains<Justification>;
using WindowSearches = Chains<WindowSearch>;

template <typename Chain>
void anneal(Chains<Chain>& chains, double temperature, int64_t evaluations, double seconds,
            int threads) {
  chains.advance(seconds, threads, [&](Chain& chain, const std::function<bool()>& ended) {
    chain.run(temperature, evaluations, ended);
  });
}

Moves moves_of(bool single) { return single ? Moves::single : Moves::annealing; }

Annealers make_annealers(const Problem& p, const std::string& goal, uint64_t seed, int count,
                         const Array<int32_t, 1>& placement, const Array<int32_t, 1>& order,
                         bool single_moves) {
  const Goal by = goal_named(goal);
  check_decision(p, view(placement), view(order));
  Annealers chains;
  for (int k = 0; k < count; ++k)
    chains.members.push_back(std::make_unique<Annealer>(
        p, by, moves_of(single_moves), seed * seed_stride + k, placement.data(), order.data()));
  return chains;
}

void move_blocks(Annealers& chains, const Array<int32_t, 1>& start, const Array<int32_t, 1>& unit,
                 const Array<int32_t, 1>& turns, int every) {
  check(every > 0, "one move in at least one");
  const auto blocks =
      std::make_shared<Blocks>(Blocks{copy_of(start), copy_of(unit), copy_of(turns), every});
  check(blocks->start.size() > 0 && blocks->start.front() == 0 &&
            blocks->start.back() == static_cast<int32_t>(blocks->units.size()) &&
            std::adjacent_find(blocks->start.begin(), blocks->start.end(),
                               std::greater_equal<>()) == blocks->start.end(),
        "blocks begin one after the other, and none is empty");
  const int units = chains.members.at(0)->problem().units;
  check(std::all_of(blocks->units.begin(), blocks->units.end(),
                    [&](int32_t u) { return u >= 0 && u < units; }),
        "a block names a unit that does not exist");
  const auto count = static_cast<int32_t>(blocks->start.size()) - 1;
  check(std::all_of(blocks->turns.begin(), blocks->turns.end(),
                    [&](int32_t block) { return block >= 0 && block < count; }),
        "a turn names a block that does not exist");
  for (auto& chain : chains.members) chain->use_blocks(blocks);
}

auto best_of(const Annealers& chains, size_t k) {
  const auto& best = chains.members.at(k)->best();
  const size_t n = best.order.size();
  return std::make_tuple(
      best.feasible, best.cost, to_numpy(std::vector<int32_t>(best.placement), {n}),
      to_numpy(std::vector<int32_t>(best.order), {n}), arrays_of(best.transfers));
}

Justifications make_justifications(const Problem& p, uint64_t seed, int count) {
  check(!p.blocking && !p.atomic, "plans are justified for overlapped transfers");
  Justifications chains;
  const auto reversed = std::make_shared<const Problem>(problem::reversed(p));
  for (int k = 0; k < count; ++k)
    chains.members.push_back(std::make_unique<Justification>(p, reversed, seed * seed_stride + k));
  return chains;
}

void justify(Justifications& chains, int64_t evaluations, double seconds, int threads) {
  chains.advance(seconds, threads, [&](Justification& chain, const std::function<bool()>& ended) {
    chain.run(evaluations, ended);
  });
}

auto best_justified(const Justifications& chains, size_t k) {
  const auto& best = chains.members.at(k)->best();
  const size_t n = best.order.size();
  return std::make_tuple(best.feasible, best.cost,
                         to_numpy(std::vector<int32_t>(best.placement), {n}),
                         to_numpy(std::vector<int32_t>(best.order), {n}));
}

WindowSearches make_window_searches(const Problem& p, uint64_t seed, int count,
                                    const Array<int32_t, 1>& placement,
                                    const Array<int32_t, 1>& order, const Array<int64_t, 1>& room) {
  check(!p.blocking && !p.atomic, "windows are timed for overlapped transfers");
  check_decision(p, view(placement), view(order));
  check(room.size() == static_cast<size_t>(p.d), "each device has room, in bytes");
  WindowSearches chains;
  nb::gil_scoped_release released;
  for (int k = 0; k < count; ++k)
    chains.members.push_back(std::make_unique<WindowSearch>(
        p, seed * seed_stride + k, placement.data(), order.data(), view(room)));
  return chains;
}

void sweep(WindowSearches& chains, double moves_an_op, double seconds, int threads) {
  check(moves_an_op >= 0 && moves_an_op <= most_moves_an_op, "moves of an op are 0 to 1,000");
  chains.advance(seconds, threads, [&](WindowSearch& chain, const std::function<bool()>& ended) {
    chain.run(moves_an_op, ended);
  });
}

auto window_plan(const WindowSearches& chains, size_t k) {
  const auto& chain = *chains.members.at(k);
  const auto n = static_cast<size_t>(chain.problem().n);
  return std::make_tuple(chain.cost(), to_numpy(std::vector<int32_t>(chain.plan().device()), {n}),
                         to_numpy(std::vector<int32_t>(chain.plan().order()), {n}));
}

LoadAnnealers make_load_annealers(const Problem& p, uint64_t seed, int count,
                                  const Array<int32_t, 1>& placement, const Array<int32_t, 1>& line,
                                  bool single_moves) {
  check_start(p, view(placement));
  check(line.size() == static_cast<size_t>(p.units), "the line has one entry a unit");
  std::vector<uint8_t> seen(p.units);
  for (const int32_t u : view(line))
    check(u >= 0 && u < p.units && !seen[u]++, "the line names every unit once");
  LoadAnnealers chains;
  for (int k = 0; k < count; ++k)
    chains.members.push_back(std::make_unique<LoadAnnealer>(
        p, moves_of(single_moves), seed * seed_stride + k, placement.data(), line.data()));
  return chains;
}

void use_power_mean(Annealers& chains, size_t k, bool use) {
  chains.members.at(k)->use_mean(use ? PeakMean::power : PeakMean::arithmetic);
}

void restart_annealer(Annealers& chains, size_t k, const Array<int32_t, 1>& placement,
                      const Array<int32_t, 1>& order,
                      const std::optional<TransferArrays>& transfers) {
  auto& chain = *chains.members.at(k);
  check_decision(chain.problem(), view(placement), view(order));
  std::vector<sim::PlacedTransfer> placed;
  if (transfers) placed = transfers_of(chain.problem(), *transfers);
  chain.restart(placement.data(), order.data(), placed);
}

void restart_load_annealer(LoadAnnealers& chains, size_t k, const Array<int32_t, 1>& placement) {
  auto& chain = *chains.members.at(k);
  check_start(chain.problem(), view(placement));
  chain.restart(placement.data());
}

void weigh(LoadAnnealers& chains, size_t k, const Array<int64_t, 1>& held,
           const Array<int64_t, 1>& capacity) {
  auto& chain = *chains.members.at(k);
  check(held.size() == static_cast<size_t>(chain.problem().n), "bytes have one entry an op");
  check(capacity.size() == static_cast<size_t>(chain.problem().d),
        "capacities have one entry a device");
  problem::check_bytes({view(held)});
  check(std::all_of(capacity.data(), capacity.data() + capacity.size(),
                    [](int64_t bytes) {
                      return -problem::most_bytes < bytes && bytes <= problem::most_bytes;
                    }),
        "capacities are at most 2^62 bytes");
  chain.weigh(held.data(), capacity.data());
}

// Splits the line of the first chain.
void split(LoadAnnealers& chains, const Array<int32_t, 1>& devices, int step) {
  check(step > 0, "a step is at least one unit");
  check(devices.size() > 0, "a line is split among at least one device");
  check_devices(chains.members.at(0)->problem(), view(devices));
  nb::gil_scoped_release released;
  chains.members.at(0)->split(copy_of(devices), step);
}

auto best_load(const LoadAnnealers& chains, size_t k) {
  const auto& chain = *chains.members.at(k);
  const auto& best = chain.best();
  return std::make_tuple(best.fits, best.period,
                         to_numpy(std::vector<int32_t>(best.device), {best.device.size()}));
}

void bind_list_rules(nb::module_& module) {
  module.def(
      "upward_rank",
      [](const Problem& p) { return to_numpy(search::upward_rank(p), {static_cast<size_t>(p.n)}); },
      "problem"_a, "Upward ranks (n,) in seconds (HEFT, Eq. 8).");
  module.def(
      "heft",
      [](const Problem& p, double room, double seconds) {
        const auto rule = [](const Problem& q, double share, Deadline deadline) {
          return search::heft(q, share, deadline);
        };
        return listed(rule, p, room, seconds);
      },
      "problem"_a, "room"_a, "seconds"_a = endless,
      R"(Placement (n,) and order (n,) by HEFT, which fills the share `room` of memory at most.

Raises OutOfTime after so many seconds.)");
  module.def(
      "etf",
      [](const Problem& p, double room, double seconds) {
        return listed(search::etf, p, room, seconds);
      },
      "problem"_a, "room"_a, "seconds"_a = endless,
      R"(Placement (n,) and order (n,) by ETF, which fills the share `room` of memory at most.

Raises OutOfTime after so many seconds.)");
  module.def(
      "memory_constrained", &memory_constrained, "problem"_a, "room"_a, nb::kw_only(),
      "preferred"_a, "favourite"_a, "seconds"_a = endless,
      R"(Placement (n,) and order (n,) by m-ETF, or by m-SCT where ops have favourite children.

room: share of memory that may be filled.
preferred: (d,) 1 for the devices that take all that they can.
favourite: (n,) an op, or -1.
seconds: OutOfTime is raised after so many.)");
}

auto without_data(const Problem& p, const Array<uint8_t, 1>& enters) {
  check(enters.size() == static_cast<size_t>(p.n), "data enters by each op or not");
  return to_numpy(search::without_data(p, view(enters)), {static_cast<size_t>(p.n)});
}

auto first_use(const Problem& p, const Array<uint8_t, 1>& off, const Array<double, 1>& place) {
  const auto n = static_cast<size_t>(p.n);
  check(off.size() == n && place.size() == n, "arrays over ops differ in length");
  return to_numpy(search::first_use(p, view(off), view(place)), {n});
}

auto fill_in_turn(const Problem& p, const Array<int32_t, 1>& ops, const Array<double, 1>& weight,
                  const Array<double, 1>& room, const Array<int32_t, 1>& turn) {
  const auto units = static_cast<size_t>(p.units);
  check(weight.size() == units && room.size() == static_cast<size_t>(p.d),
        "each unit has a weight and each device room");
  check_devices(p, view(turn));
  check(turn.size() > 0 && std::all_of(ops.data(), ops.data() + ops.size(),
                                       [&](int32_t op) { return op >= 0 && op < p.n; }),
        "ops are in the problem, and a device takes its turn");
  return to_numpy(search::fill_in_turn(p, view(ops), view(weight), copy_of(room), copy_of(turn)),
                  {units});
}

void bind_turns(nb::module_& module) {
  module.def("without_data", &without_data, "problem"_a, "enters"_a,
             R"((n,) 1 for each op that no data reaches.

enters: (n,) 1 for ops by which data enters, of those that read nothing.)");
  module.def("first_use", &first_use, "problem"_a, "without_data"_a, "place"_a,
             R"((n,) the place at which each op is first needed.

without_data: (n,) 1 for ops that are needed where their first reader is.
place: (n,) of each op in an order.)");
  module.def("fill_in_turn", &fill_in_turn, "problem"_a, "ops"_a, "weight"_a, "room"_a, "turn"_a,
             R"((units,) the device of each unit, where one device after the other is filled.

ops: in which order units come.
weight: (units,) of each unit.
room: (d,) weight that each device takes.
turn: devices, the first to be filled first.)");
}

PlacedOrders make_placed_orders(const Problem& p, const Array<int32_t, 1>& placement,
                                const Array<int32_t, 1>& line) {
  check_decision(p, view(placement), view(line));
  check(!p.blocking && !p.atomic, "orders are listed for overlapped transfers");
  nb::gil_scoped_release released;
  return PlacedOrders(p, copy_of(placement), view(line));
}

auto placed_order(const PlacedOrders& orders, double turn, double path,
                  const Array<int64_t, 1>& reserved, double patience) {
  check(reserved.size() == static_cast<size_t>(orders.problem().d) &&
            std::all_of(reserved.data(), reserved.data() + reserved.size(),
                        [](int64_t bytes) { return 0 <= bytes && bytes <= problem::most_bytes; }),
        "bytes are reserved of each device, from none to 2^62");
  std::vector<int32_t> order;
  {
    nb::gil_scoped_release released;
    order = orders.order({turn, path, patience}, view(reserved));
  }
  const size_t n = order.size();
  return to_numpy(std::move(order), {n});
}

void bind_placed_orders(nb::module_& module) {
  nb::class_<PlacedOrders>(module, "PlacedOrders", "List schedules of one placement.")
      .def("order", &placed_order, "turn"_a, "path"_a, "reserved"_a, "patience"_a = 0.0,
           R"(Order (n,) in which ops start.

turn, path: weights of an early turn, and of the seconds from an op to the end of the step.
reserved: (d,) bytes that are left free where they can be.
patience: the longest wait for an op that other devices wait for and whose inputs are on their way,
as a share of the seconds of the op that could start instead.)")
      .def_prop_ro("fits", &PlacedOrders::fits,
                   "Whether the ops fit in memory one after the other, in their turns.");
  module.def("make_placed_orders", &make_placed_orders, nb::keep_alive<0, 1>(), "problem"_a,
             "placement"_a, "line"_a,
             "List schedules of a placement (n,); `line` (n,) is a topological order.");
}

void bind_annealers(nb::module_& module) {
  nb::class_<Annealers>(module, "Annealers",
                        "Independent chains of annealing over placement and order.")
      .def("run", &anneal<Annealer>, "temperature"_a, "evaluations"_a, "seconds"_a, "threads"_a,
           "So many steps of every chain, fewer after so many seconds.")
      .def(
          "best", &best_of, "chain"_a,
          R"(Whether a chain's best plan fits memory, its cost, placement (n,) and order (n,); and, where
a transfer is early, the tensors, targets and places (k,) of all, as `blocking_transfers` has them.)")
      .def(
          "use_power_mean", &use_power_mean, "chain"_a, "use"_a,
          R"(For the goal of memory: from its next restart on, a chain adds the power mean of degree 4 of the
devices' peaks to the largest one, or the arithmetic mean.)")
      .def("restart", &restart_annealer, "chain"_a, "placement"_a, "order"_a,
           "transfers"_a = nb::none(),
           "Continues a chain from another plan (n,), (n,), where it says so with its transfers.")
      .def(
          "typical_change",
          [](Annealers& chains, int64_t evaluations) {
            return chains.members.at(0)->typical_change(evaluations);
          },
          "evaluations"_a,
          "The median absolute change of cost by so many moves of the first chain.")
      .def("move_blocks", &move_blocks, "start"_a, "units"_a, "turns"_a, "every"_a,
           R"(Moves a block of units in one step of `every`.

start, units: (b + 1,), (e,) block i has units[start[i]:start[i + 1]].
turns: (t,) blocks; one is drawn as often as it is here.)")
      .def_prop_ro("evaluations", &Annealers::evaluations);
  module.def("make_annealers", &make_annealers, nb::keep_alive<0, 1>(), "problem"_a, "goal"_a,
             "seed"_a, "count"_a, "placement"_a, "order"_a, "single_moves"_a = false,
             R"(Chains that start from one plan (n,), (n,). The goal is time, memory or shortfall,
which is the bytes above all capacities in sum.

single_moves: a step gives one unit another device or one op another place, and nothing else.)");
}

void bind_justifications(nb::module_& module) {
  nb::class_<Justifications>(module, "Justifications", "Independent chains of justification.")
      .def("run", &justify, "evaluations"_a, "seconds"_a, "threads"_a,
           "Lists so many plans in every chain, fewer after so many seconds.")
      .def(
          "best", &best_justified, "chain"_a,
          R"(Whether a chain's best plan fits memory, its cost, placement (n,) and order (n,); none has an op
before the chain has run.)")
      .def_prop_ro("evaluations", &Justifications::evaluations);
  module.def("make_justifications", &make_justifications, nb::keep_alive<0, 1>(), "problem"_a,
             "seed"_a, "count"_a, "Chains that begin with the plan of HEFT.");
}

void bind_window_searches(nb::module_& module) {
  nb::class_<WindowSearches>(module, "WindowSearches",
                             "Independent chains of local search in a long plan, window by window.")
      .def("run", &sweep, "moves_an_op"_a, "seconds"_a, "threads"_a,
           R"(Sweeps every chain to the end of its plan, not so far after so many seconds.

moves_an_op: tried in one sweep.)")
      .def(
          "plan", &window_plan, "chain"_a,
          R"(The longest way in seconds through the window of a chain, its placement (n,) and order (n,).)")
      .def(
          "swept",
          [](const WindowSearches& chains, size_t k) { return chains.members.at(k)->swept(); },
          "chain"_a, "Share of the sweep of a chain that is over; 0 as a sweep begins.")
      .def_prop_ro("evaluations", &WindowSearches::evaluations);
  module.def("make_window_searches", &make_window_searches, nb::keep_alive<0, 1>(), "problem"_a,
             "seed"_a, "count"_a, "placement"_a, "order"_a, "room"_a,
             R"(Chains that start from one plan (n,), (n,).

room: (d,) bytes that each device has left for ops that move there.)");
}

void bind_load_annealers(nb::module_& module) {
  nb::class_<LoadAnnealers>(module, "LoadAnnealers",
                            "Independent chains of annealing of the period.")
      .def("run", &anneal<LoadAnnealer>, "temperature"_a, "evaluations"_a, "seconds"_a, "threads"_a,
           "So many steps of every chain, fewer after so many seconds.")
      .def("best", &best_load, "chain"_a,
           "Whether a chain's best placement fits memory, its period, and the placement (n,).")
      .def("restart", &restart_load_annealer, "chain"_a, "placement"_a,
           "Continues a chain from another placement (n,).")
      .def("weigh", &weigh, "chain"_a, "held"_a, "capacity"_a,
           "From now on ops hold so many bytes (n,) and devices have room for so many (d,).")
      .def("split", &split, "devices"_a, "step"_a,
           R"(Restarts the first chain from the best split of the line into contiguous pieces.

devices: (k,) that take the pieces, in this order.
step: units of which the pieces are multiples.)")
      .def_prop_ro("evaluations", &LoadAnnealers::evaluations);
  module.def("make_load_annealers", &make_load_annealers, nb::keep_alive<0, 1>(), "problem"_a,
             "seed"_a, "count"_a, "placement"_a, "line"_a, "single_moves"_a = false,
             R"(Chains that start from one placement (n,); `line` (u,) orders the units along the
pipeline.

single_moves: a step gives one unit another device, and nothing else.)");
}

}  // namespace

auto best_item_order(const Problem& p, const Array<int32_t, 1>& placement, const std::string& goal,
                     int64_t excess, double value, double constant, int64_t steps, double seconds) {
  check_start(p, view(placement));
  check(p.blocking, places_where_blocking);
  check(goal == "time" || goal == "memory" || goal == "fit", "the goal is time, memory or fit");
  using search::ItemGoal;
  const auto by = goal == "time"     ? ItemGoal::time
                  : goal == "memory" ? ItemGoal::memory
                                     : ItemGoal::fit;
  search::ItemOrder best;
  {
    nb::gil_scoped_release released;
    best =
        search::best_item_order(p, view(placement), by, {excess, value, constant, steps, seconds});
  }
  const size_t n = best.ops.size();
  return std::make_tuple(best.exhausted, best.steps, to_numpy(std::move(best.ops), {n}),
                         arrays_of(best.transfers));
}

void bind_item_orders(nb::module_& module) {
  module.def("best_item_order", &best_item_order, "problem"_a, "placement"_a, "goal"_a,
             nb::kw_only(), "excess"_a, "value"_a, "constant"_a, "steps"_a, "seconds"_a,
             R"(The best order of a placement's ops and transfers, where transfers are blocking.

Whether there is no better one, the items that were tried, and the order (n,) of ops with tensors,
targets and places (k,) of transfers, as `blocking_transfers` has them; without ops where there is no
order of a score below (excess, value).

goal: `time`, `memory`, or `fit` for the fewest bytes above capacities, where all orders have the value `constant`.
steps, seconds: items that may be tried, and when to end.)");
}

void bind_search(nb::module_& module) {
  bind_item_orders(module);
  nb::exception<search::OutOfTime>(module, "OutOfTime");
  bind_turns(module);
  bind_list_rules(module);
  bind_placed_orders(module);
  bind_annealers(module);
  bind_window_searches(module);
  bind_justifications(module);
  bind_load_annealers(module);
}

}  // namespace situate::bindings
