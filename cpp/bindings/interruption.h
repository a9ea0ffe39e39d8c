// Ctrl-C while the core computes.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace situate::bindings {

using Clock = std::chrono::steady_clock;

// Python tells its main thread alone of a signal, and only when that thread asks. An object of this
// class is made by the thread that calls the core; all threads ask it.
class Interruption {
 public:
  // Whether a signal's handler has raised an exception. The calling thread looks every 50 ms.
  bool heard(Clock::time_point now) {
    if (std::this_thread::get_id() == caller_ && now >= next_look_) {
      next_look_ = now + std::chrono::milliseconds(50);
      const nanobind::gil_scoped_acquire acquired;
      if (PyErr_CheckSignals() != 0) heard_ = true;
    }
    return heard_;
  }
  // Throws the exception that Python's handler raised.
  void raise() const {
    if (heard_) throw nanobind::python_error();
  }

 private:
  const std::thread::id caller_ = std::this_thread::get_id();
  Clock::time_point next_look_ = Clock::now();
  std::atomic<bool> heard_ = false;
};

}  // namespace situate::bindings
