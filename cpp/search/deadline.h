// The end of the time that a computation may take.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace situate::search {

struct OutOfTime : std::runtime_error {
  OutOfTime() : std::runtime_error("no time is left") {}
};

class Deadline {
 public:
  explicit Deadline(double seconds = std::numeric_limits<double>::infinity()) : seconds_(seconds) {}

  // Throws OutOfTime when the seconds are over. Looks at the clock in one call of 256.
  void check() {
    if (++calls_ % 256 == 0 && passed() > seconds_) throw OutOfTime();
  }

 private:
  using Clock = std::chrono::steady_clock;
  double passed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  const Clock::time_point begin_ = Clock::now();
  const double seconds_;
  uint32_t calls_ = 0;
};

}  // namespace situate::search
