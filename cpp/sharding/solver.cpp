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

// Numbers in the tables of the largest instance that is divided.
constexpr int64_t kLargest = 4'000'000;
// Relative error of sums of costs.
constexpr double kError = 1e-9;

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
      relaxation_(instance_, seed),
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
  const double bound = std::abs(relaxation_.bound());
  if (excess_ > 0) return 1.2 * bound;
  // A bound of zero says nothing about the scale of costs.
  return bound > 0 ? std::min(value_, 1.5 * bound) : value_;
}

// Costs are whole numbers: a better plan costs one less, but for the error of sums.
double Solver::cutoff() const {
  if (excess_ > 0 || value_ >= kForbidden) return std::numeric_limits<double>::infinity();
  return value_ - 1 + std::max(kError, kError * std::abs(value_));
}

double Solver::bound() const {
  const double relaxed = relaxation_.bound();
  const double bound = branching_ ? std::max(relaxed, branching_->bound()) : relaxed;
  // Parts without a better plan are left out of the bounds.
  return excess_ == 0 ? std::min(bound, value_) : bound;
}

void Solver::decode(const std::vector<int>& chosen, Decoding& best) const {
  Loads loads(instance_.times());
  for (int i = 0; i < instance_.ops(); ++i)
    for (const Part& part : instance_.parts(i))
      loads.add(part.begin, part.end, part.usage[chosen[i]]);
  const int64_t excess = std::max<int64_t>(0, loads.most() - instance_.limit());
  const double value = instance_.value(chosen), limit = std::max(1.0, 1.0 * instance_.limit());
  const double rank = value * (1 + static_cast<double>(excess) / limit);
  if (rank < best.rank) best = {chosen, value, rank, excess};
}

// There is a plan to compare parts with, messages are stuck, and parts take seconds at most.
bool Solver::worth_branching(double cutoff) const {
  return std::isfinite(cutoff) && relaxation_.messages().standstills() > 0 &&
         relaxation_.instance().table_numbers() <= kLargest;
}

void Solver::ascend(const Stopped& stopped) {
  Decoding best;
  best.rank = std::numeric_limits<double>::infinity();
  const double cutoff = this->cutoff();
  if (!branching_ && worth_branching(cutoff)) branching_.emplace(instance_, relaxation_.record());
  if (branching_) {
    branching_->divide(cutoff, stopped);
    if (!branching_->chosen().empty()) decode(branching_->chosen(), best);
  }
  for (int i = 0; i < kPasses && !stopped(); ++i) {
    relaxation_.pass(cutoff);
    decode(relaxation_.chosen(), best);
    if (rounds_ * kPasses + i >= kFree) relaxation_.step(upper());
  }
  if (!best.chosen.empty()) decoding_ = std::move(best);
}

// Beside a division, which takes long, the search goes on for longer.
void Solver::search(const Stopped& stopped) {
  const int64_t pass = std::max<int64_t>(1, instance_.table_numbers());
  const int64_t sweeps = kSweeps + kSweeps * work_ / (kPasses * pass);
  search_.run(sweeps * std::max(search_.choices(), 1000), stopped);
}

void Solver::round(bool two_threads, const Stopped& stopped) {
  if (two_threads) {
    std::thread other([&] { ascend(stopped); });
    search(stopped);
    other.join();
  } else {
    ascend(stopped);
    search(stopped);
  }
  work_ = branching_ ? branching_->work() : 0;
  offer(decoding_.chosen, decoding_.value, decoding_.excess);
  offer(search_.chosen(), search_.value(), search_.excess());
  search_.set_prices(relaxation_.messages().prices());
  if (++rounds_ % kPolish == 0) {
    const bool again = rounds_ / kPolish % 3 == 0;
    search_.restart(again ? best_ : decoding_.chosen);
  }
}

}  // namespace situate::sharding
