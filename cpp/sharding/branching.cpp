#include "sharding/branching.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sharding/halves.h"

namespace situate::sharding {

namespace {


// Ways of dividing that are tried, passes of each trial, and passes of the best one.
constexpr int kWays = 6, kWayPasses = 6, kPartPasses = 40;

bool above(const Relaxation::Record& a, const Relaxation::Record& b) { return a.bound > b.bound; }

}  // namespace

Branching::Branching(const Instance& whole, Part root) : whole_(whole) {
  open_.push_back(std::move(root));
}

double Branching::bound() const { return open_.empty() ? std::numeric_limits<double>::infinity() : open_.front().bound; }

bool Branching::ascend(Relaxation& part, int passes, double cutoff, const Stopped& stopped) {
  for (int i = 0; i < passes && part.bound() <= cutoff; ++i) {
    if (stopped()) return false;
    part.pass(cutoff);
    part.step(cutoff);
    ++passes_;
  }
  return true;
}

void Branching::put(const Relaxation& part, double cutoff) {
  if (part.bound() > cutoff) return;
  const Instance& instance = part.instance();
  open_.push_back(part.record(std::vector<uint8_t>(instance.first(instance.ops()), 1)));
  std::push_heap(open_.begin(), open_.end(), above);
}

void Branching::divide(double cutoff, const Stopped& stopped) {
  passes_ = 0;
  if (open_.empty()) return;
  Relaxation part(whole_, open_.front());
  if (!ascend(part, 1, cutoff, stopped)) return;
  std::unique_ptr<Relaxation> one, other;
  double most = -1;
  const double bound = part.bound(), gap = cutoff - bound;
  if (bound <= cutoff) {
    for (const Halves& pair : halves(part, gap, kWays)) {
      auto left = std::make_unique<Relaxation>(whole_, part.record(pair.first));
      auto right = std::make_unique<Relaxation>(whole_, part.record(pair.second));
      if (!ascend(*left, kWayPasses, cutoff, stopped) ||
          !ascend(*right, kWayPasses, cutoff, stopped))
        return;
      const double rise = std::min(left->bound() - bound, gap), other_rise = std::min(right->bound() - bound, gap);
      const double score = std::max(rise, 1e-6 * gap) * std::max(other_rise, 1e-6 * gap);
      if (score <= most) continue;
      most = score;
      one = std::move(left);
      other = std::move(right);
    }
    if (one && (!ascend(*one, kPartPasses, cutoff, stopped) || !ascend(*other, kPartPasses, cutoff, stopped))) return;
  }
  std::pop_heap(open_.begin(), open_.end(), above);
  open_.pop_back();
  if (bound > cutoff) return;
  if (!one) {
     put(part, cutoff); // nothing to divide
     return;
  }
  chosen_ = (one->bound() < other->bound() ? one : other)->chosen();
  put(*one, cutoff);
  put(*other, cutoff);
}

}  // namespace situate::sharding
