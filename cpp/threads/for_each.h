// Runs long steps on threads that are started for them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
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
    try {
      auto step = make_step();
      for (size_t k = next++; k < count; k = next++) step(k);
    } catch (...) {
      next = count;
      const std::lock_guard lock(noting);
      raised = std::current_exception();
    }
  };
  // Every thread takes the memory that an exception needs before any thread works: where it is
  // taken only for the exception that says there is none left, glibc ends the process.
  std::atomic<size_t> prepared = 0;
  std::atomic<bool> begun = false;
  const auto help = [&] {
    [[maybe_unused]] const auto none = std::current_exception();
    ++prepared;
    prepared.notify_one();
    begun.wait(false);
    work();
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (size_t t = 1; t < std::min<size_t>(threads, count); ++t) helpers.emplace_back(help);
    } catch (const std::exception&) {  // no thread, or no memory for one
    }
    for (size_t done = prepared; done < helpers.size(); done = prepared) prepared.wait(done);
    begun = true;
    begun.notify_all();
    work();
  }
  if (raised) std::rethrow_exception(raised);
}

}  // namespace situate::threads
