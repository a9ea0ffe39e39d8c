#pragma once

#include <nanobind/nanobind.h>

namespace situate::bindings {

// The parts of the learned policies that are in the core.
void bind_policies(nanobind::module_& module);

}  // namespace situate::bindings
