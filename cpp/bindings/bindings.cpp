// The Python module `situate._core`: numpy arrays in, numpy arrays out, and the GIL released where
// the core computes for long.
#include "bindings/bindings.h"

NB_MODULE(_core, module) {
  using namespace situate::bindings;
  nanobind::set_leak_warnings(false);  // an exception that is kept to the end holds its frames
  bind_problem(module);
  bind_simulation(module);
  bind_search(module);
  bind_memory_orders(module);
  bind_brkga(module);
  bind_partition(module);
  bind_bounds(module);
  bind_threads(module);
  bind_nn(module);
}
