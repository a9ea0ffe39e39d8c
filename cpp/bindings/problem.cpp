// Binds the placement problem: four groups of arrays, and the problem that is made of them.
#include "problem/problem.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "problem/check.h"
#include "problem/depth_first.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace situate::bindings {
namespace {

using problem::check;
using problem::Memory;
using problem::Problem;

struct Ops {
  Array<double, 2> seconds;
  Array<int64_t, 1> persistent, workspace;
  Array<int32_t, 1> order, unit;
  Array<uint8_t, 2> allowed;
};

struct Tensors {
  Array<int64_t, 1> size;
  Array<int32_t, 1> producer, consumer_start, consumers;
  Array<double, 1> own_seconds;
  Array<uint8_t, 1> resident, output;
};

struct Devices {
  Array<int64_t, 1> capacity;
  Array<uint8_t, 1> pays;
  Array<double, 2> latency, bandwidth;
  Array<int32_t, 2> channel;
};

struct Rules {
  bool blocking, contention, signals, atomic;
  std::string memory;
  double synchronisation;
};

Memory memory_named(const std::string& name) {
  if (name == "time") return Memory::time;
  if (name == "step") return Memory::step;
  if (name == "persistent") return Memory::persistent;
  throw std::invalid_argument("unknown memory measure " + name);
}

void take_ops(const Ops& ops, Problem& p) {
  const auto n = static_cast<size_t>(p.n);
  check(ops.persistent.size() == n && ops.workspace.size() == n && ops.order.size() == n &&
            ops.unit.size() == n,
        "arrays over ops differ in length");
  p.seconds = copy_of(ops.seconds);
  p.persistent = copy_of(ops.persistent);
  p.workspace = copy_of(ops.workspace);
  p.order = copy_of(ops.order);
  p.unit = copy_of(ops.unit);
  p.allowed = copy_of(ops.allowed);
}

void take_tensors(const Tensors& tensors, Problem& p) {
  const auto m = static_cast<size_t>(p.m);
  check(tensors.producer.size() == m && tensors.own_seconds.size() == m &&
            tensors.resident.size() == m && tensors.output.size() == m &&
            tensors.consumer_start.size() == m + 1,
        "arrays over tensors differ in length");
  p.size = copy_of(tensors.size);
  p.producer = copy_of(tensors.producer);
  p.consumer_start = copy_of(tensors.consumer_start);
  p.consumers = copy_of(tensors.consumers);
  p.own_seconds = copy_of(tensors.own_seconds);
  p.resident = copy_of(tensors.resident);
  p.output = copy_of(tensors.output);
}

void take_devices(const Devices& devices, Problem& p) {
  const auto d = static_cast<size_t>(p.d);
  const auto pairs = [d](const auto& array) { return has_shape(array, {d, d}); };
  check(devices.capacity.size() == d && devices.pays.size() == d && pairs(devices.latency) &&
            pairs(devices.bandwidth) && pairs(devices.channel),
        "arrays over devices differ in length");
  p.capacity = copy_of(devices.capacity);
  p.pays = copy_of(devices.pays);
  p.latency = copy_of(devices.latency);
  p.bandwidth = copy_of(devices.bandwidth);
  p.channel = copy_of(devices.channel);
}

Problem made(const Ops& ops, const Tensors& tensors, const Devices& devices, const Rules& rules) {
  Problem p;
  p.n = static_cast<int>(ops.seconds.shape(0));
  p.d = static_cast<int>(ops.seconds.shape(1));
  p.m = static_cast<int>(tensors.size.shape(0));
  check(ops.allowed.shape(1) == ops.seconds.shape(1), "arrays over devices differ in length");
  take_ops(ops, p);
  take_tensors(tensors, p);
  take_devices(devices, p);
  p.blocking = rules.blocking;
  p.contention = rules.contention;
  p.signals = rules.signals;
  p.atomic = rules.atomic;
  p.memory = memory_named(rules.memory);
  p.synchronisation = rules.synchronisation;
  p.derive();
  return p;
}

auto depth_first_order(const Array<int32_t, 1>& order, const Array<int64_t, 1>& start,
                       const Array<int32_t, 1>& before) {
  const auto n = static_cast<int64_t>(order.size());
  const auto edges = static_cast<int64_t>(before.size());
  const auto first = view(start);
  check(static_cast<int64_t>(start.size()) == n + 1 && first.front() == 0 && first.back() == edges,
        "start has n + 1 places from 0 to the number of edges");
  check(std::is_sorted(first.begin(), first.end()), "start does not fall");
  const auto is_op = [n](int32_t op) { return op >= 0 && op < n; };
  check(std::ranges::all_of(view(order), is_op) && std::ranges::all_of(view(before), is_op),
        "ops are at least 0 and below n");
  auto visited = problem::depth_first_order(view(order), first, view(before));
  const size_t count = visited.size();
  return to_numpy(std::move(visited), {count});
}

}  // namespace

void bind_problem(nb::module_& module) {
  nb::class_<Ops>(module, "Ops", R"(The n ops of a problem, in u colocation units, on d devices.

seconds: (n, d), infinite where an op cannot run.
persistent, workspace: (n,) bytes for the whole step, and while the op runs.
order: (n,) a topological order.
unit: (n,) the colocation unit of every op.
allowed: (u, d), 1 where a unit may run.)")
      .def(nb::init<Array<double, 2>, Array<int64_t, 1>, Array<int64_t, 1>, Array<int32_t, 1>,
                    Array<int32_t, 1>, Array<uint8_t, 2>>(),
           nb::kw_only(), "seconds"_a, "persistent"_a, "workspace"_a, "order"_a, "unit"_a,
           "allowed"_a);
  nb::class_<Tensors>(module, "Tensors", R"(The m tensors of a problem, and who reads them.

size: (m,) bytes.
producer: (m,) the op that produces a tensor.
consumer_start, consumers: (m + 1,), (e,) the ops that read tensor t are
    consumers[consumer_start[t]:consumer_start[t + 1]].
own_seconds: (m,) seconds of a transfer, NaN where size and link decide.
resident: (m,) 1 where the bytes are among its producer's persistent ones.
output: (m,) 1 where the tensor is kept to the end of the step.)")
      .def(nb::init<Array<int64_t, 1>, Array<int32_t, 1>, Array<int32_t, 1>, Array<int32_t, 1>,
                    Array<double, 1>, Array<uint8_t, 1>, Array<uint8_t, 1>>(),
           nb::kw_only(), "size"_a, "producer"_a, "consumer_start"_a, "consumers"_a,
           "own_seconds"_a, "resident"_a, "output"_a);
  nb::class_<Devices>(module, "Devices", R"(The d devices of a problem and the links between them.

capacity: (d,) bytes.
pays: (d,) 1 where a device pays for its transfers, under atomic rules.
latency, bandwidth: (d, d) seconds, bytes a second.
channel: (d, d) the channel that a pair of devices uses, -1 on the diagonal.)")
      .def(nb::init<Array<int64_t, 1>, Array<uint8_t, 1>, Array<double, 2>, Array<double, 2>,
                    Array<int32_t, 2>>(),
           nb::kw_only(), "capacity"_a, "pays"_a, "latency"_a, "bandwidth"_a, "channel"_a);
  nb::class_<Rules>(module, "Rules", R"(The rules of the execution model.

blocking: whether a transfer occupies its sender and its receiver.
contention: whether transfers of one channel wait for one another.
signals: whether tensors of size zero without own seconds occupy nothing.
atomic: whether a device runs all its ops as one call (dnn-partitioning).
memory: the measure of memory: time, step or persistent.
synchronisation: seconds added to every transfer.)")
      .def(nb::init<bool, bool, bool, bool, std::string, double>(), nb::kw_only(), "blocking"_a,
           "contention"_a, "signals"_a, "atomic"_a, "memory"_a, "synchronisation"_a);
  nb::class_<Problem>(module, "Problem", "A placement problem, of which the core keeps a copy.")
      .def(
          "__init__",
          [](Problem* self, const Ops& ops, const Tensors& tensors, const Devices& devices,
             const Rules& rules) { new (self) Problem(made(ops, tensors, devices, rules)); },
          nb::kw_only(), "ops"_a, "tensors"_a, "devices"_a, "rules"_a);
  module.def(
      "depth_first_order", &depth_first_order, "order"_a, "start"_a, "before"_a,
      R"(Ops (n,) in post-order: each follows its predecessors, and comes just before its first successor.

order: (n,) all ops; those without successors are reached in this order.
start, before: (n + 1,), (e,) the predecessors of op i are before[start[i]:start[i + 1]], without
    cycles; the last one comes first.)");
}

}  // namespace situate::bindings
