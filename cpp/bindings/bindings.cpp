// The Python face of the core: arrays in, arrays out, the GIL released where it searches.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "bindings/nn.h"
#include "bindings/numpy.h"
#include "partition/coarsening.h"
#include "problem/check.h"
#include "problem/problem.h"
#include "search/annealer.h"
#include "search/list_rules.h"
#include "search/load_annealer.h"
#include "simulation/atomic_calls.h"
#include "simulation/simulator.h"
#include "threads/futex.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace situate::bindings {

using namespace problem;
using namespace sim;
using namespace search;
using namespace partition;
using namespace threads;
namespace {

template <typename A>
auto copy_of(const A& array) {
  using T = std::remove_const_t<typename A::Scalar>;
  return std::vector<T>{array.data(), array.data() + array.size()};
}

Memory memory_named(const std::string& name) {
  if (name == "time") return Memory::time;
  if (name == "step") return Memory::step;
  if (name == "persistent") return Memory::persistent;
  throw std::invalid_argument("unknown memory measure " + name);
}

Decoder decoder_named(const std::string& name) {
  if (name == "eager") return Decoder::eager;
  if (name == "serial") return Decoder::serial;
  throw std::invalid_argument("unknown decoder " + name);
}

template <typename A>
auto view(const A& array) {
  return std::span(array.data(), array.size());
}

void check_finite(std::span<const float> priorities) {
  check(std::all_of(priorities.begin(), priorities.end(), [](float x) { return std::isfinite(x); }),
        "priorities must be finite");
}

Problem make_problem(const Array<double, 2>& seconds, const Array<int64_t, 1>& size,
                     const Array<int32_t, 1>& producer, const Array<int32_t, 1>& consumer_start,
                     const Array<int32_t, 1>& consumers, const Array<double, 1>& own_seconds,
                     const Array<uint8_t, 1>& resident, const Array<uint8_t, 1>& output,
                     const Array<int64_t, 1>& persistent, const Array<int64_t, 1>& workspace,
                     const Array<int64_t, 1>& capacity, const Array<double, 2>& latency,
                     const Array<double, 2>& bandwidth, const Array<int32_t, 2>& channel,
                     const Array<int32_t, 1>& order, const Array<int32_t, 1>& unit,
                     const Array<uint8_t, 2>& allowed, const Array<uint8_t, 1>& pays,
                     double synchronisation, bool blocking, bool contention, bool atomic,
                     const std::string& memory) {
  Problem p;
  p.n = static_cast<int>(seconds.shape(0));
  p.d = static_cast<int>(seconds.shape(1));
  p.m = static_cast<int>(size.shape(0));
  const auto n = static_cast<size_t>(p.n), m = static_cast<size_t>(p.m),
             d = static_cast<size_t>(p.d);
  check(producer.size() == m && own_seconds.size() == m && resident.size() == m &&
            output.size() == m && consumer_start.size() == m + 1,
        "arrays over tensors differ in length");
  check(persistent.size() == n && workspace.size() == n && order.size() == n && unit.size() == n,
        "arrays over ops differ in length");
  const auto pairs = [d](const auto& array) { return array.shape(0) == d && array.shape(1) == d; };
  check(capacity.size() == d && pays.size() == d && pairs(latency) && pairs(bandwidth) &&
            pairs(channel) && allowed.shape(1) == d,
        "arrays over devices differ in length");
  p.seconds = copy_of(seconds);
  p.size = copy_of(size);
  p.producer = copy_of(producer);
  p.consumer_start = copy_of(consumer_start);
  p.consumers = copy_of(consumers);
  p.own_seconds = copy_of(own_seconds);
  p.resident = copy_of(resident);
  p.output = copy_of(output);
  p.persistent = copy_of(persistent);
  p.workspace = copy_of(workspace);
  p.capacity = copy_of(capacity);
  p.latency = copy_of(latency);
  p.bandwidth = copy_of(bandwidth);
  p.channel = copy_of(channel);
  p.order = copy_of(order);
  p.unit = copy_of(unit);
  p.allowed = copy_of(allowed);
  p.pays = copy_of(pays);
  p.synchronisation = synchronisation;
  p.blocking = blocking;
  p.contention = contention;
  p.atomic = atomic;
  p.memory = memory_named(memory);
  p.derive();
  return p;
}

void check_placement(const Problem& p, const int32_t* placement, size_t count) {
  check(std::all_of(placement, placement + count, [&](int32_t d) { return d >= 0 && d < p.d; }),
        "a placement names a device that does not exist");
}

void check_placement(const Problem& p, const Array<int32_t, 1>& placement) {
  check(placement.size() == static_cast<size_t>(p.n), "a placement has one entry an op");
  check_placement(p, placement.data(), placement.size());
}

using TransferPriorities = std::optional<Array<float, 3>>;

// Of `count` decisions.
void check_priorities(const Problem& p, size_t count, std::span<const float> of_ops,
                      const TransferPriorities& of_transfers) {
  check_finite(of_ops);
  if (!of_transfers) return;
  check(of_transfers->shape(0) == count && of_transfers->shape(1) == static_cast<size_t>(p.m) &&
            of_transfers->shape(2) == static_cast<size_t>(p.d),
        "transfer priorities must be decisions x tensors x devices");
  check_finite(view(*of_transfers));
}

const float* row_of(const TransferPriorities& priorities, const Problem& p, size_t row) {
  return priorities ? priorities->data() + row * static_cast<size_t>(p.m) * p.d : nullptr;
}

// Runs a step for every one of `count`, each on one of the threads, which makes its own. What one
// raises is raised here, and nothing new is begun then. Threads that the system refuses are done
// without.
template <typename MakeStep>
void on_threads(size_t count, int threads, MakeStep make_step) {
  std::atomic<size_t> next = 0;
  std::mutex noting;
  std::exception_ptr raised;
  const auto work = [&] {
    try {
      auto step = make_step();
      for (size_t k = next++; k < count; k = next++) step(k);
    } catch (...) {
      next = count;
      const std::lock_guard lock(noting);
      raised = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (size_t t = 1; t < std::min<size_t>(threads, count); ++t) helpers.emplace_back(work);
    } catch (const std::system_error&) {
    }
    work();
  }
  if (raised) std::rethrow_exception(raised);
}

auto evaluate(const Problem& p, const Array<int32_t, 2>& placement, const Array<float, 2>& priority,
              const TransferPriorities& transfer_priority, const std::string& decoder,
              int threads) {
  const size_t count = placement.shape(0), n = static_cast<size_t>(p.n),
               d = static_cast<size_t>(p.d);
  check(placement.shape(1) == n && priority.shape(0) == count && priority.shape(1) == n,
        "placements and priorities must both be k x ops");
  check_priorities(p, count, view(priority), transfer_priority);
  check_placement(p, placement.data(), placement.size());
  check(threads > 0, "there must be a thread");
  const Decoder by = decoder_named(decoder);
  std::vector<double> makespan(count);
  std::vector<int64_t> peak(count * d);
  {
    nb::gil_scoped_release released;
    on_threads(count, threads, [&] {
      return [&, simulator = std::make_unique<Simulator>(p)](size_t k) {
        makespan[k] = simulator->run(
            {placement.data() + k * n, priority.data() + k * n, row_of(transfer_priority, p, k)},
            by, peak.data() + k * d);
      };
    });
  }
  return std::make_tuple(to_numpy(std::move(makespan), {count}),
                         to_numpy(std::move(peak), {count, d}));
}

auto schedule(const Problem& p, const Array<int32_t, 1>& placement, const Array<float, 1>& priority,
              const TransferPriorities& transfer_priority, const std::string& decoder) {
  const auto n = static_cast<size_t>(p.n);
  check(placement.size() == n && priority.size() == n,
        "a placement and its priorities have one entry an op");
  check_priorities(p, 1, view(priority), transfer_priority);
  check_placement(p, placement.data(), n);
  Simulator simulator(p);
  std::vector<int64_t> peak(p.d);
  const double makespan =
      simulator.run({placement.data(), priority.data(), row_of(transfer_priority, p, 0)},
                    decoder_named(decoder), peak.data());
  std::vector<int32_t> tensor, source, target;
  std::vector<double> start, end;
  for (const auto& transfer : simulator.transfers()) {
    tensor.push_back(transfer.tensor);
    source.push_back(transfer.source);
    target.push_back(transfer.target);
    start.push_back(transfer.start);
    end.push_back(transfer.end);
  }
  const size_t k = tensor.size();
  return std::make_tuple(to_numpy(std::vector<double>(simulator.start()), {n}),
                         to_numpy(std::vector<double>(simulator.end()), {n}),
                         to_numpy(std::move(tensor), {k}), to_numpy(std::move(source), {k}),
                         to_numpy(std::move(target), {k}), to_numpy(std::move(start), {k}),
                         to_numpy(std::move(end), {k}), makespan,
                         to_numpy(std::move(peak), {static_cast<size_t>(p.d)}));
}

template <typename Rule>
auto listed(Rule rule, const Problem& p, double room) {
  check(room >= 0 && room <= 1, "room is a share of memory: 0 to 1");
  Listed result;
  {
    nb::gil_scoped_release released;
    result = rule(p, room);
  }
  const size_t n = result.order.size();
  return std::make_tuple(to_numpy(std::move(result.placement), {n}),
                         to_numpy(std::move(result.order), {n}));
}

auto calls(const Problem& p, const Array<int32_t, 1>& placement) {
  check_placement(p, placement);
  auto result = run_calls(p, placement.data());
  const size_t d = p.d, n = p.n;
  return std::make_tuple(result.makespan, to_numpy(std::move(result.begin), {d}),
                         to_numpy(std::move(result.load), {d}),
                         to_numpy(std::move(result.op_end), {n}));
}

// What a chain starts from: moves never take an op from where it may not run, or units apart.
void check_start(const Problem& p, const Array<int32_t, 1>& placement) {
  check_placement(p, placement);
  const int32_t* device = placement.data();
  for (int op = 0; op < p.n; ++op) {
    check(p.may_run(p.unit[op], device[op]), "a placement puts an op where it may not run");
    check(device[op] == device[p.members_of(p.unit[op])[0]],
          "a placement puts ops of one unit on two devices");
  }
}

void check_decision(const Problem& p, const Array<int32_t, 1>& placement,
                    const Array<int32_t, 1>& order) {
  check_start(p, placement);
  check_order(p, view(order));
}

using Clock = std::chrono::steady_clock;

// Hears Ctrl-C, which Python tells its main thread alone, while that one works in here.
class Interruption {
 public:
  // Whether it was pressed; whoever asks later, on any thread, is told so too.
  bool heard(Clock::time_point now) {
    if (std::this_thread::get_id() == caller_ && now >= next_look_) {
      next_look_ = now + std::chrono::milliseconds(50);
      const nb::gil_scoped_acquire acquired;
      if (PyErr_CheckSignals() != 0) heard_ = true;
    }
    return heard_;
  }
  // Hands on what Python's handler raised.
  void raise() const {
    if (heard_) throw nb::python_error();
  }

 private:
  const std::thread::id caller_ = std::this_thread::get_id();
  Clock::time_point next_look_ = Clock::now();
  std::atomic<bool> heard_ = false;
};

// Several independent chains of annealing, advanced together.
template <typename Chain>
struct Chains {
  std::vector<std::unique_ptr<Chain>> members;

  Chains() = default;
  Chains(Chains&&) = default;
  Chains(const Chains&) = delete;

  void run(double temperature, int64_t evaluations, double seconds, int threads) {
    check(threads > 0, "there must be a thread");
    Interruption interruption;
    const auto advance = [&](size_t k) {
      const auto begin = Clock::now();
      members[k]->run(temperature, evaluations, [&, begin] {
        const auto now = Clock::now();
        return std::chrono::duration<double>(now - begin).count() > seconds ||
               interruption.heard(now);
      });
    };
    {
      nb::gil_scoped_release released;
      on_threads(members.size(), threads, [&] { return advance; });
    }
    interruption.raise();
  }
  int64_t evaluations() const {
    int64_t sum = 0;
    for (const auto& chain : members) sum += chain->evaluations();
    return sum;
  }
};

using Annealers = Chains<Annealer>;
using Balancers = Chains<Balancer>;

Annealers make_annealers(const Problem& p, const std::string& goal, uint64_t seed, int count,
                         const Array<int32_t, 1>& placement, const Array<int32_t, 1>& order) {
  check(goal == "time" || goal == "memory", "the goal is time or memory");
  check_decision(p, placement, order);
  Annealers chains;
  for (int k = 0; k < count; ++k)
    chains.members.push_back(
        std::make_unique<Annealer>(p, goal == "time" ? Goal::time : Goal::memory,
                                   seed * 1000003 + k, placement.data(), order.data()));
  return chains;
}

// Lets blocks of units move together, one move in `every`.
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
  for (auto& chain : chains.members) chain->move(blocks);
}

auto best_of(const Annealers& chains, size_t k) {
  const auto& best = chains.members.at(k)->best();
  const size_t n = best.order.size();
  return std::make_tuple(best.feasible, best.cost,
                         to_numpy(std::vector<int32_t>(best.placement), {n}),
                         to_numpy(std::vector<int32_t>(best.order), {n}));
}

Balancers make_balancers(const Problem& p, uint64_t seed, int count,
                         const Array<int32_t, 1>& placement, const Array<int32_t, 1>& line) {
  check_start(p, placement);
  check(line.size() == static_cast<size_t>(p.units), "the line has one entry a unit");
  std::vector<uint8_t> seen(p.units);
  for (const int32_t u : view(line))
    check(u >= 0 && u < p.units && !seen[u]++, "the line names every unit once");
  Balancers chains;
  for (int k = 0; k < count; ++k)
    chains.members.push_back(
        std::make_unique<Balancer>(p, seed * 1000003 + k, placement.data(), line.data()));
  return chains;
}

void restart_annealer(Annealers& chains, size_t k, const Array<int32_t, 1>& placement,
                      const Array<int32_t, 1>& order) {
  auto& chain = *chains.members.at(k);
  check_decision(chain.problem(), placement, order);
  chain.restart(placement.data(), order.data());
}

void restart_balancer(Balancers& chains, size_t k, const Array<int32_t, 1>& placement) {
  auto& chain = *chains.members.at(k);
  check_start(chain.problem(), placement);
  chain.restart(placement.data());
}

void weigh(Balancers& chains, size_t k, const Array<int64_t, 1>& held,
           const Array<int64_t, 1>& capacity) {
  auto& chain = *chains.members.at(k);
  check(held.size() == static_cast<size_t>(chain.problem().n), "bytes have one entry an op");
  check(capacity.size() == static_cast<size_t>(chain.problem().d),
        "capacities have one entry a device");
  check_bytes({view(held)});
  check(std::all_of(capacity.data(), capacity.data() + capacity.size(),
                    [](int64_t bytes) { return -most_bytes < bytes && bytes <= most_bytes; }),
        "capacities are at most 2^62 bytes");
  chain.weigh(held.data(), capacity.data());
}

// Splits the line of the first chain.
void split(Balancers& chains, const Array<int32_t, 1>& devices, int step) {
  check(step > 0, "a step is at least one unit");
  check(devices.size() > 0, "a line is split among at least one device");
  check_placement(chains.members.at(0)->problem(), devices.data(), devices.size());
  nb::gil_scoped_release released;
  chains.members.at(0)->split(copy_of(devices), step);
}

// A label of every unit, the same for units of one group.
Numpy<int64_t> contract(const Array<int64_t, 1>& start, const Array<int64_t, 1>& neighbour,
                        const Array<int64_t, 1>& bytes, const Array<double, 1>& seconds,
                        const Array<int64_t, 1>& persistent, const Array<int64_t, 1>& capacity,
                        const Array<uint8_t, 2>& allowed, const Array<int64_t, 1>& counts,
                        int64_t fine, double most) {
  const size_t units = seconds.size(), edges = neighbour.size();
  const size_t partitions = counts.size();
  check(most > 1 && fine > 0 &&
            std::all_of(counts.data(), counts.data() + partitions,
                        [](int64_t count) { return count > 0 && count <= INT32_MAX; }),
        "at least one group, longer than the average");
  check(start.size() == units + 1 && persistent.size() == units && allowed.shape(0) == units &&
            bytes.size() == edges && allowed.shape(1) == capacity.size() && capacity.size() > 0,
        "arrays over units, edges or devices differ in length");
  check_bytes({view(persistent)});
  check(start.data()[0] == 0 && start.data()[units] == static_cast<int64_t>(edges) &&
            std::is_sorted(start.data(), start.data() + units + 1) &&
            std::all_of(neighbour.data(), neighbour.data() + edges,
                        [&](int64_t u) { return u >= 0 && u < static_cast<int64_t>(units); }),
        "rows must follow each other and name units");
  nb::gil_scoped_release released;
  Contraction contraction({static_cast<int>(units), static_cast<int>(capacity.size()), view(start),
                           view(neighbour), view(bytes), view(seconds), view(persistent),
                           view(capacity), view(allowed)});
  if (fine < static_cast<int64_t>(units)) contraction.reach(static_cast<int>(fine), most);
  std::vector<int64_t> labels;
  labels.reserve(partitions * units);
  for (size_t i = 0; i < partitions; ++i) {
    auto coarse = contraction;
    coarse.reach(static_cast<int>(counts.data()[i]), most);
    const auto reached = coarse.labels();
    labels.insert(labels.end(), reached.begin(), reached.end());
  }
  nb::gil_scoped_acquire acquired;
  return to_numpy(std::move(labels), {partitions, units});
}

auto best_balance(const Balancers& chains, size_t k) {
  const auto& chain = *chains.members.at(k);
  const size_t n = chain.best().size();
  return std::make_tuple(chain.best_fits(), chain.best_period(),
                         to_numpy(std::vector<int32_t>(chain.best()), {n}));
}

// Counters in an array that several processes map.
struct Flags {
  nb::ndarray<uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> array;
  double spin;

  uint32_t& at(size_t i) {
    check(i < array.size(), "no such flag");
    return array.data()[i];
  }
};

}  // namespace
}  // namespace situate::bindings

NB_MODULE(_core, module) {
  using namespace situate::bindings;
  nb::set_leak_warnings(false);  // an exception that is kept to the end holds its frames
  nb::class_<Problem>(module, "Problem");
  module.def("make_problem", &make_problem, nb::kw_only(), "seconds"_a, "size"_a, "producer"_a,
             "consumer_start"_a, "consumers"_a, "own_seconds"_a, "resident"_a, "output"_a,
             "persistent"_a, "workspace"_a, "capacity"_a, "latency"_a, "bandwidth"_a, "channel"_a,
             "order"_a, "unit"_a, "allowed"_a, "pays"_a, "synchronisation"_a, "blocking"_a,
             "contention"_a, "atomic"_a, "memory"_a);
  module.def("evaluate", &evaluate, "problem"_a, "placement"_a, "priority"_a,
             "transfer_priority"_a.none(), "decoder"_a, "threads"_a);
  module.def("schedule", &schedule, "problem"_a, "placement"_a, "priority"_a,
             "transfer_priority"_a.none(), "decoder"_a);
  module.def(
      "upward_rank",
      [](const Problem& p) { return to_numpy(upward_rank(p), {static_cast<size_t>(p.n)}); },
      "problem"_a);
  module.def(
      "heft", [](const Problem& p, double room) { return listed(heft, p, room); }, "problem"_a,
      "room"_a);
  module.def(
      "etf", [](const Problem& p, double room) { return listed(etf, p, room); }, "problem"_a,
      "room"_a);
  module.def("calls", &calls, "problem"_a, "placement"_a);

  nb::class_<Annealers>(module, "Annealers")
      .def("run", &Annealers::run, "temperature"_a, "evaluations"_a, "seconds"_a, "threads"_a)
      .def("best", &best_of, "chain"_a)
      .def("restart", &restart_annealer, "chain"_a, "placement"_a, "order"_a)
      .def(
          "typical_change",
          [](Annealers& chains, int64_t evaluations) {
            return chains.members.at(0)->typical_change(evaluations);
          },
          "evaluations"_a)
      .def("move_blocks", &move_blocks, "start"_a, "units"_a, "turns"_a, "every"_a)
      .def_prop_ro("evaluations", &Annealers::evaluations);
  module.def("make_annealers", &make_annealers, nb::keep_alive<0, 1>(), "problem"_a, "goal"_a,
             "seed"_a, "count"_a, "placement"_a, "order"_a);

  nb::class_<Balancers>(module, "Balancers")
      .def("run", &Balancers::run, "temperature"_a, "evaluations"_a, "seconds"_a, "threads"_a)
      .def("best", &best_balance, "chain"_a)
      .def("restart", &restart_balancer, "chain"_a, "placement"_a)
      .def("weigh", &weigh, "chain"_a, "held"_a, "capacity"_a)
      .def("split", &split, "devices"_a, "step"_a)
      .def_prop_ro("evaluations", &Balancers::evaluations);
  module.def("make_balancers", &make_balancers, nb::keep_alive<0, 1>(), "problem"_a, "seed"_a,
             "count"_a, "placement"_a, "line"_a);

  module.def("contract", &contract, nb::kw_only(), "start"_a, "neighbour"_a, "bytes"_a, "seconds"_a,
             "persistent"_a, "capacity"_a, "allowed"_a, "counts"_a, "fine"_a, "most"_a);

  nb::class_<Flags>(module, "Flags")
      .def(
          "post", [](Flags& flags, size_t i, uint32_t value) { post(flags.at(i), value); },
          "index"_a, "value"_a)
      .def(
          "wait",
          [](Flags& flags, size_t i, uint32_t value, double seconds) {
            const uint32_t& flag = flags.at(i);
            nb::gil_scoped_release released;
            return wait(flag, value, seconds, flags.spin);
          },
          "index"_a, "value"_a, "seconds"_a);
  module.def(
      "make_flags",
      [](nb::ndarray<uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> array, double spin) {
        return Flags{std::move(array), spin};
      },
      "array"_a, "spin"_a = 0.0);

  bind_policies(module);
}
