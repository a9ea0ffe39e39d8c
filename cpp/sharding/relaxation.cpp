#include "sharding/relaxation.h"

#include <limits>
#include <utility>

#include "sharding/dominance.h"
#include "sharding/pruning.h"

namespace situate::sharding {

namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
// Share of the strategies that must be excluded before the tables are gathered again.
constexpr double kWorthwhile = 0.05;

}  // namespace

Relaxation::Relaxation(const Instance& whole, uint64_t seed)
    : whole_(whole),
      instance_(&whole),
      messages_(std::make_unique<Messages>(whole, seed)),
      bound_(-kUnbounded) {}

Relaxation::Relaxation(const Instance& whole, Record record)
    : whole_(whole),
      restriction_(std::make_unique<Restriction>(whole, record.keep)),
      instance_(&restriction_->instance),
      messages_(std::make_unique<Messages>(*instance_, std::move(record.dual))),
      bound_(record.bound) {
  std::vector<uint8_t> keep(instance_->first(instance_->ops()), 1);
  drop_dominated(*instance_, keep);
  restrict(std::move(keep));
}

void Relaxation::pass(double cutoff) {
  if (bound_ == kUnbounded) return;
  messages_->pass(cutoff);
  bound_ = std::max(bound_, messages_->best_bound());
  const auto strategies = static_cast<double>(instance_->first(instance_->ops()));
  if (static_cast<double>(messages_->excluded()) > kWorthwhile * strategies)
    restrict(messages_->keep());
}

void Relaxation::restrict(std::vector<uint8_t> keep) {
  if (!prune(*instance_, keep)) {
    bound_ = kUnbounded;
    return;
  }
  if (std::all_of(keep.begin(), keep.end(), [](uint8_t k) { return k != 0; })) return;
  auto restriction = std::make_unique<Restriction>(whole_, over_whole(keep));
  auto messages = std::make_unique<Messages>(restriction->instance, *messages_, keep);
  messages_ = std::move(messages);
  restriction_ = std::move(restriction);
  instance_ = &restriction_->instance;
}

std::vector<int> Relaxation::chosen() const {
  const auto& chosen = messages_->chosen();
  return restriction_ ? restriction_->expand(chosen) : chosen;
}

std::vector<uint8_t> Relaxation::over_whole(std::span<const uint8_t> keep) const {
  if (!restriction_) return {keep.begin(), keep.end()};
  std::vector<uint8_t> all(whole_.first(whole_.ops()));
  for (int i = 0; i < instance_->ops(); ++i)
    for (int64_t own = instance_->first(i); own < instance_->first(i + 1); ++own)
      all[whole_.first(i) + restriction_->strategy[own]] = keep[own];
  return all;
}

Relaxation::Record Relaxation::record() const {
  return record(std::vector<uint8_t>(instance_->first(instance_->ops()), 1));
}

Relaxation::Record Relaxation::record(std::span<const uint8_t> keep) const {
  return {bound_, over_whole(keep), messages_->dual(keep)};
}

}  // namespace situate::sharding
