// The bound of the plans that have only some of an instance's strategies and cost no more than a
// cutoff. As the bound grows, strategies that no such plan has are taken away.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sharding/branching/restriction.h"
#include "sharding/messages.h"

namespace situate::sharding {

class Relaxation {
 public:
  // A relaxation at rest: without its tables.
  struct Record {
    double bound = 0;
    std::vector<uint8_t> keep;  // over the strategies of the whole instance
    Dual dual;
  };

  // All strategies of an instance, which must outlive this.
  Relaxation(const Instance& whole, uint64_t seed);
  Relaxation(const Instance& whole, Record record);

  // A pass of messages, after which strategies go whose plans all cost more than the cutoff.
  void pass(double cutoff);
  // A step of the prices, as `Messages::step`.
  void step(double upper) { messages_->step(upper); }

  // The largest bound so far; infinite if no plan is left.
  double bound() const { return bound_; }
  // The strategies left.
  const Instance& instance() const { return *instance_; }
  const Messages& messages() const { return *messages_; }
  // The strategies that the messages favour, of the whole instance.
  std::vector<int> chosen() const;

  // This relaxation with only the strategies in `keep`, over those left.
  Record record(std::span<const uint8_t> keep) const;
  Record record() const;

 private:
  void restrict(std::vector<uint8_t> keep);
  std::vector<uint8_t> over_whole(std::span<const uint8_t> keep) const;

  const Instance& whole_;
  std::unique_ptr<Restriction> restriction_;
  const Instance* instance_;  // of the restriction, or the whole
  std::unique_ptr<Messages> messages_;
  double bound_;
};

}  // namespace situate::sharding
