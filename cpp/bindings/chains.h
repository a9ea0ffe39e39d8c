// Independent chains of a search, advanced together.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "bindings/checks.h"
#include "bindings/interruption.h"
#include "threads/for_each.h"

namespace situate::bindings {

constexpr uint64_t seed_stride = 1000003;  // so that chains of near seeds have seeds of their own

template <typename Chain>
struct Chains {
  std::vector<std::unique_ptr<Chain>> members;

  Chains() = default;
  Chains(Chains&&) = default;
  Chains(const Chains&) = delete;

  // Calls step(chain, ended) of every chain; `ended` says when the chain has had its seconds.
  template <typename Step>
  void advance(double seconds, int threads, Step step) {
    check(threads > 0, "there must be a thread");
    Interruption interruption;
    const auto advance_one = [&](size_t k) {
      const auto begin = Clock::now();
      step(*members[k], [&, begin] {
        const auto now = Clock::now();
        return std::chrono::duration<double>(now - begin).count() > seconds ||
               interruption.heard(now);
      });
    };
    {
      nanobind::gil_scoped_release released;
      threads::for_each(members.size(), threads, [&] { return advance_one; });
    }
    interruption.raise();
  }
  int64_t evaluations() const {
    int64_t sum = 0;
    for (const auto& chain : members) sum += chain->evaluations();
    return sum;
  }
};

}  // namespace situate::bindings
