// The Python module `situate._core`, a submodule for each folder of the core: numpy arrays in,
// numpy arrays out, and the GIL released where the core computes for long.
#include "bindings/bindings.h"

NB_MODULE(_core, module) {
  using namespace situate::bindings;
  nanobind::set_leak_warnings(false);  // an exception that is kept to the end holds its frames
  auto submodule = [&](const char* name, const char* doc) {
    return module.def_submodule(name, doc);
  };

  auto problem = submodule("problem", "A problem as the core holds it.");
  bind_problem(problem);
  auto simulation = submodule("simulation", "Schedules, makespans and peaks of decisions.");
  bind_simulation(simulation);
  auto search = submodule("search", "List rules, annealing, BRKGA and orders for memory.");
  bind_search(search);
  bind_memory_orders(search);
  bind_brkga(search);
  auto partition = submodule("partition", "Coarsening and bisection of graphs of units.");
  bind_partition(partition);
  auto bounds = submodule("bounds", "Longest paths, joins and least live bytes.");
  bind_bounds(bounds);
  auto sharding = submodule("sharding", "A sharding for every op, with lower bounds.");
  bind_sharding(sharding);
  auto threads = submodule("threads", "Flags in shared memory, for processes that wait.");
  bind_threads(threads);
  auto nn = submodule("nn", "Layers of learned policies, with their gradients.");
  bind_nn(nn);
}
