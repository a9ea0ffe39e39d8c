// The parts of the Python module `situate._core`, one a folder of the core.
#pragma once

#include <nanobind/nanobind.h>

namespace situate::bindings {

void bind_problem(nanobind::module_& module);
void bind_sharding(nanobind::module_& module);
void bind_simulation(nanobind::module_& module);
void bind_search(nanobind::module_& module);
void bind_memory_orders(nanobind::module_& module);
void bind_brkga(nanobind::module_& module);
void bind_partition(nanobind::module_& module);
void bind_bounds(nanobind::module_& module);
void bind_nn(nanobind::module_& module);
void bind_device_sampler(nanobind::module_& module);
void bind_threads(nanobind::module_& module);

}  // namespace situate::bindings
