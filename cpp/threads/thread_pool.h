// Threads that share pieces of work of a few microseconds each.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace situate::threads {

// Whoever is free takes the next piece, so that a thread which the system has stopped for a while
// holds nobody up, unless it is in the middle of one.
class Team {
 public:
  // The thread that calls is one of them. Where the system has no more, there are fewer.
  explicit Team(int threads) {
    try {
      for (int other = 1; other < threads; ++other) others_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
    }
  }
  ~Team() {
    stop_.store(true, std::memory_order_release);
    for (auto& other : others_) other.join();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // piece(0), ..., piece(count - 1) in any order, several at once; when all are done, what one of
  // them raised is raised.
  template <typename Piece>
  void share(int count, const Piece& piece) {
    if (others_.empty() || count == 1) {
      for (int i = 0; i < count; ++i) piece(i);
      return;
    }
    piece_ = &piece;
    call_ = [](const void* of, int i) { (*static_cast<const Piece*>(of))(i); };
    done_.store(0, std::memory_order_relaxed);
    left_.store((++round_ << 32) | static_cast<uint64_t>(count), std::memory_order_release);
    while (take()) {
    }
    for (int turn = 0; done_.load(std::memory_order_acquire) < count; ++turn) rest(turn);
    if (raised_) std::rethrow_exception(std::exchange(raised_, nullptr));
  }

 private:
  // One piece, if there is one left. As long as it is not done its round lasts.
  bool take() {
    uint64_t left = left_.load(std::memory_order_acquire);
    do {
      if (static_cast<uint32_t>(left) == 0) return false;
    } while (!left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel));
    try {
      call_(piece_, static_cast<int>(static_cast<uint32_t>(left)) - 1);
    } catch (...) {
      const std::lock_guard lock(raising_);
      raised_ = std::current_exception();
    }
    done_.fetch_add(1, std::memory_order_release);
    return true;
  }

  void work() {
    for (int turn = 0; !stop_.load(std::memory_order_acquire); ++turn)
      if (take())
        turn = 0;
      else
        rest(turn);
  }

  // The next piece comes sooner than a sleeping thread would wake; but where there are more threads
  // than processors, one that waits makes room.
  static void rest(int turn) {
    if (turn > patience) std::this_thread::yield();
  }

  static constexpr int patience = 2000;

  std::vector<std::thread> others_;
  std::atomic<uint64_t> left_{0};  // the round, and how many of its pieces nobody has taken
  std::atomic<int> done_{0};
  std::atomic<bool> stop_{false};
  std::mutex raising_;
  std::exception_ptr raised_;
  uint64_t round_ = 0;
  const void* piece_ = nullptr;
  void (*call_)(const void*, int) = nullptr;
};

}  // namespace situate::threads
