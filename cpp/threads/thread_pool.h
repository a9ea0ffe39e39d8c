// A pool of threads for tasks of a few microseconds each.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace situate::threads {

// Whichever thread is free takes the next task, so that a thread which the system has stopped for
// a while delays the others only by the task that it is in the middle of.
class ThreadPool {
 public:
  // `threads` counts the calling thread. Where the system refuses more threads, or memory for them,
  // there are fewer.
  explicit ThreadPool(int threads) {
    // Threads that run must not be lost because their list cannot grow.
    others_.reserve(static_cast<size_t>(std::max(threads - 1, 0)));
    try {
      for (int other = 1; other < threads; ++other) others_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
    }
  }
  ~ThreadPool() {
    stop_.store(true, std::memory_order_release);
    for (auto& other : others_) other.join();
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Runs task(0), ..., task(count - 1), in any order and several at once, and returns when all are
  // done; then an exception that one of them threw is thrown here.
  template <typename Task>
  void parallel_for(int count, const Task& task) {
    if (others_.empty() || count == 1) {
      for (int i = 0; i < count; ++i) task(i);
      return;
    }
    task_ = &task;
    call_ = [](const void* of, int i) { (*static_cast<const Task*>(of))(i); };
    done_.store(0, std::memory_order_relaxed);
    left_.store((++round_ << 32) | static_cast<uint64_t>(count), std::memory_order_release);
    while (take()) {
    }
    for (int turn = 0; done_.load(std::memory_order_acquire) < count; ++turn) rest(turn);
    if (raised_) std::rethrow_exception(std::exchange(raised_, nullptr));
  }

 private:
  // Runs one task if one is left. The number of the round is in the same word as the number of
  // tasks, so that a thread that read it in an earlier round cannot take a task of this one.
  bool take() {
    uint64_t left = left_.load(std::memory_order_acquire);
    do {
      if (static_cast<uint32_t>(left) == 0) return false;
    } while (!left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel));
    try {
      call_(task_, static_cast<int>(static_cast<uint32_t>(left)) - 1);
    } catch (...) {
      const std::lock_guard lock(raising_);
      raised_ = std::current_exception();
    }
    done_.fetch_add(1, std::memory_order_release);
    return true;
  }

  void work() {
    // Takes the memory that an exception needs while there is some.
    [[maybe_unused]] const auto none = std::current_exception();
    for (int turn = 0; !stop_.load(std::memory_order_acquire); ++turn)
      if (take())
        turn = 0;
      else
        rest(turn);
  }

  // Spins at first, since the next task comes sooner than a sleeping thread would wake; then
  // yields, so that where threads outnumber processors those with a task can run.
  static void rest(int turn) {
    if (turn > spins_before_yield) std::this_thread::yield();
  }

  static constexpr int spins_before_yield = 2000;

  std::vector<std::thread> others_;
  std::atomic<uint64_t> left_{0};  // upper half: the round; lower half: tasks that nobody has taken
  std::atomic<int> done_{0};
  std::atomic<bool> stop_{false};
  std::mutex raising_;
  std::exception_ptr raised_;
  uint64_t round_ = 0;
  const void* task_ = nullptr;
  void (*call_)(const void*, int) = nullptr;
};

}  // namespace situate::threads
