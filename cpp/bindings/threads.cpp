// Binds the counters in shared memory by which the processes of a placed step wait for one another.
#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "problem/check.h"
#include "threads/futex.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace situate::bindings {
namespace {

using Counters = nb::ndarray<uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

struct Flags {
  Counters array;
  double spin;

  uint32_t& at(size_t i) {
    problem::check(i < array.size(), "no such flag");
    return array.data()[i];
  }
};

bool wait_for(Flags& flags, size_t i, uint32_t value, double seconds) {
  const uint32_t& flag = flags.at(i);
  nb::gil_scoped_release released;
  return threads::wait(flag, value, seconds, flags.spin);
}

}  // namespace

void bind_threads(nb::module_& module) {
  nb::class_<Flags>(module, "Flags", "Counters in an array (f,) that several processes map.")
      .def(
          "post", [](Flags& flags, size_t i, uint32_t value) { threads::post(flags.at(i), value); },
          "index"_a, "value"_a, "Sets a counter and wakes all processes that wait for it.")
      .def("wait", &wait_for, "index"_a, "value"_a, "seconds"_a,
           "Waits until a counter has reached a value; False if it has not after so many seconds.");
  module.def(
      "make_flags", [](Counters array, double spin) { return Flags{std::move(array), spin}; },
      "array"_a, "spin"_a = 0.0,
      "Counters of an array (f,); a wait spins for the first `spin` seconds.");
}

}  // namespace situate::bindings
