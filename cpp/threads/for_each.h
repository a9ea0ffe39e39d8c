// Runs long steps on threads that are started for them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace situate::threads {

// Runs step(0), ..., step(count - 1). Every thread makes a step function of its own, by
// make_step(), and runs the indices that it takes. After an exception no further index is begun,
// and the exception is thrown here. Where the system refuses threads, there are fewer.
template <typename MakeStep>
void for_each(size_t count, int threads, MakeStep make_step) {
  std::atomic<size_t> next = 0;
  std::mutex noting;
  std::exception_ptr raised;
  const auto work = [&] {
    // Takes the memory that an exception needs while there is some: where it is taken for an
    // exception that says there is none, glibc ends the process.
    [[maybe_unused]] const auto none = std::current_exception();
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

}  // namespace situate::threads
