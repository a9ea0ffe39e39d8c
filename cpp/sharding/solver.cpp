#include "sharding/solver.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "sharding/loads.h"

namespace situate::sharding {

namespace {

// Passes of a round, and how many of the first leave prices at zero.
constexpr int kPasses = 4, kFree = 8;
// Ops that a round's moves look at, in numbers of all ops.
constexpr int kSweeps = 8;
// Rounds that polish one start, before the next is tried.
constexpr int kPolish = 3;

std::vector<int> least_usage(const Instance& instance) {
  std::vector<int> chosen(instance.ops());
  for (int i = 0; i < instance.ops(); ++i) {
    std::vector<int64_t> bytes(instance.strategies(i));
    for (const Part& part : instance.parts(i))
      for (size_t x = 0; x < bytes.size(); ++x) bytes[x] += part.usage[x];
    chosen[i] = static_cast<int>(std::min_element(bytes.begin(), bytes.end()) - bytes.begin());
  }
  return chosen;
}

}  // namespace

Solver::Solver(const Arrays& arrays, uint64_t seed)
    : instance_(arrays),
      messages_(instance_, seed),
      search_(instance_, least_usage(instance_), seed),
      best_(search_.chosen()),
      value_(search_.value()),
      excess_(search_.excess()) {
  decoding_.chosen = best_;
}

void Solver::offer(const std::vector<int>& chosen, double value, int64_t excess) {
  if (excess > excess_ || (excess == excess_ && value >= value_)) return;
  best_ = chosen;
  value_ = value;
  excess_ = excess;
}

// What the bound is compared with in the length of a step.
double Solver::upper() const {
  const double bound = std::abs(messages_.best_bound());
  return excess_ == 0 ? std::min(value_, 1.5 * bound) : 1.2 * bound;
}

void Solver::decode(Decoding& best) {
  const auto& chosen = messages_.chosen();
  Loads loads(instance_.times());
  for (int i = 0; i < instance_.ops(); ++i)
    for (const Part& part : instance_.parts(i))
      loads.add(part.begin, part.end, part.usage[chosen[i]]);
  const int64_t excess = std::max<int64_t>(0, loads.most() - instance_.limit());
  const double value = instance_.value(chosen), limit = std::max(1.0, 1.0 * instance_.limit());
  const double rank = value * (1 + static_cast<double>(excess) / limit);
  if (rank < best.rank) best = {chosen, value, rank, excess};
}

void Solver::ascend() {
  Decoding best;
  best.rank = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kPasses; ++i) {
    messages_.pass();
    decode(best);
    if (rounds_ * kPasses + i >= kFree) messages_.step(upper());
  }
  decoding_ = std::move(best);
}

void Solver::search() {
  search_.run(static_cast<int64_t>(kSweeps) * std::max(search_.choices(), 1000));
}

void Solver::round(bool two_threads) {
  if (two_threads) {
    std::thread other([this] { ascend(); });
    search();
    other.join();
  } else {
    ascend();
    search();
  }
  offer(decoding_.chosen, decoding_.value, decoding_.excess);
  offer(search_.chosen(), search_.value(), search_.excess());
  search_.set_prices(messages_.prices());
  if (++rounds_ % kPolish == 0) {
    const bool again = rounds_ / kPolish % 3 == 0;
    search_.restart(again ? best_ : decoding_.chosen);
  }
}

}  // namespace situate::sharding
