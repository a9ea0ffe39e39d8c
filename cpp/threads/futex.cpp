#include "threads/futex.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>
#endif

namespace situate::threads {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// Reads of the flag between two looks at the clock.
constexpr int reads_between_clocks = 64;

constexpr double longest_sleep = 3600;

uint32_t read(const uint32_t& flag) {
  return std::atomic_ref<uint32_t>(const_cast<uint32_t&>(flag)).load(std::memory_order_acquire);
}

bool reached(uint32_t now, uint32_t value) { return static_cast<int32_t>(now - value) >= 0; }

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Sleeps while `flag` is `now`, for `limit` seconds at most. Futexes of the kernel work between
// processes; std::atomic::wait need not.
void sleep_while(const uint32_t& flag, uint32_t now, double limit) {
#ifdef __linux__
  const auto whole = static_cast<time_t>(limit);
  const timespec time{whole, static_cast<long>((limit - static_cast<double>(whole)) * 1e9)};
  syscall(SYS_futex, &flag, FUTEX_WAIT, now, &time, nullptr, 0);
#else
  constexpr double nap = 50e-6;
  std::this_thread::sleep_for(Seconds(std::min(limit, nap)));
#endif
}

}  // namespace

void post(uint32_t& flag, uint32_t value) {
  std::atomic_ref<uint32_t>(flag).store(value, std::memory_order_release);
#ifdef __linux__
  syscall(SYS_futex, &flag, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
#endif
}

bool wait(const uint32_t& flag, uint32_t value, double limit, double spin) {
  const auto begin = Clock::now();
  const auto end = begin + Seconds(limit);
  const double awake = std::min(spin, limit);
  do {
    for (int i = 0; i < reads_between_clocks; ++i) {
      if (reached(read(flag), value)) return true;
      pause();
    }
  } while (Seconds(Clock::now() - begin).count() < awake);
  for (uint32_t now = read(flag); !reached(now, value); now = read(flag)) {
    const double left = Seconds(end - Clock::now()).count();
    if (!(left > 0)) return false;
    sleep_while(flag, now, std::min(left, longest_sleep));
  }
  return true;
}

}  // namespace situate::threads
