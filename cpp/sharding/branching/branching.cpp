#include "sharding/branching/branching.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "sharding/branching/halves.h"

namespace situate::sharding {

namespace {

// Ways of dividing a part that are tried, passes of each trial, and further passes of the best one.
constexpr int kWays = 10, kWayPasses = 6, kPartPasses = 25;
// The least rise of a bound, as a share of the gap, that counts in the choice of a way.
constexpr double kLeastRise = 1e-6;

bool above(const Branching::Part& a, const Branching::Part& b) { return a.bound > b.bound; }

}  // namespace

Branching::Branching(const Instance& whole, Part root) : whole_(whole) {
  open_.push_back(std::move(root));
}

double Branching::bound() const {
  return open_.empty() ? std::numeric_limits<double>::infinity() : open_.front().bound;
}

void Branching::divide(double cutoff, const Stopped& stopped) {
  work_ = 0;
  if (open_.empty()) return;
  Relaxation part(whole_, open_.front());
  if (!ascend(part, 1, cutoff, stopped)) return;
  std::vector<std::unique_ptr<Relaxation>> parts;
  if (part.bound() <= cutoff) {
    parts = best_halves(part, cutoff, stopped);
    for (const auto& half : parts)
      if (!ascend(*half, kPartPasses, cutoff, stopped)) return;
    if (stopped()) return;
  }
  std::pop_heap(open_.begin(), open_.end(), above);
  open_.pop_back();
  for (const auto& half : parts) put(*half, cutoff);
}

// The parts of the way of dividing that raises both bounds most; the part itself if there is none.
std::vector<std::unique_ptr<Relaxation>> Branching::best_halves(const Relaxation& part,
                                                                double cutoff,
                                                                const Stopped& stopped) {
  const double bound = part.bound(), gap = std::max(cutoff - bound, 1e-9);
  double most = -1;
  std::vector<std::unique_ptr<Relaxation>> best;
  for (const Halves& way : halves(part, gap, kWays)) {
    std::vector<std::unique_ptr<Relaxation>> parts;
    double score = 1;
    for (const auto& keep : {way.first, way.second}) {
      parts.push_back(std::make_unique<Relaxation>(whole_, part.record(keep)));
      if (!ascend(*parts.back(), kWayPasses, cutoff, stopped)) return {};
      score *= std::clamp((parts.back()->bound() - bound) / gap, kLeastRise, 1.0);
    }
    if (score <= most) continue;
    most = score;
    best = std::move(parts);
  }
  if (best.empty()) best.push_back(std::make_unique<Relaxation>(whole_, part.record()));
  return best;
}

// False if stopped.
bool Branching::ascend(Relaxation& part, int passes, double cutoff, const Stopped& stopped) {
  for (int i = 0; i < passes && part.bound() <= cutoff; ++i) {
    if (stopped()) return false;
    work_ += part.instance().table_numbers();
    part.pass(cutoff);
    part.step(cutoff);
  }
  return true;
}

void Branching::put(const Relaxation& part, double cutoff) {
  if (part.bound() > cutoff) return;
  Part record = part.record();
  const auto chosen = part.chosen();
  // A single plan is no relaxation any more: it fits, as pruning leaves it.
  const Instance& instance = part.instance();
  if (instance.first(instance.ops()) == instance.ops()) record.bound = whole_.value(chosen);
  if (record.bound > cutoff) return;
  chosen_ = chosen;
  open_.push_back(std::move(record));
  std::push_heap(open_.begin(), open_.end(), above);
}

}  // namespace situate::sharding
