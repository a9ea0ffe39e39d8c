#include "simulation/simulator.h"

#include <algorithm>

#include "simulation/blocking/blocking_eager.h"
#include "simulation/blocking/blocking_items.h"
#include "simulation/blocking/blocking_serial.h"
#include "simulation/overlapped.h"
#include "simulation/peak_memory.h"

namespace situate::sim {

using problem::Memory;

Simulator::Simulator(const Problem& problem)
    : problem_(problem), timeline_(problem), bytes_(problem), step_memory_(problem) {
  if (!problem.blocking) {
    overlapped_ = std::make_unique<Overlapped>(problem, timeline_, bytes_);
    return;
  }
  items_ = std::make_unique<BlockingItems>(problem);
  serial_ = std::make_unique<BlockingSerial>(problem, *items_);
  eager_ = std::make_unique<BlockingEager>(problem, *items_);
}

Simulator::~Simulator() = default;

double Simulator::run(const Decision& decision, Decoder decoder) {
  timeline_.clear();
  return decode(decision, decoder == Decoder::serial, false, false);
}

double Simulator::run(const Decision& decision, Decoder decoder, int64_t* peak) {
  const bool times = problem_.memory == Memory::time;
  return run(decision, decoder, peak, times);
}

double Simulator::schedule(const Decision& decision, Decoder decoder, int64_t* peak) {
  return run(decision, decoder, peak, true);
}

double Simulator::run(const Decision& decision, Decoder decoder, int64_t* peak, bool times) {
  timeline_.clear();
  bytes_.reset(decision.placement);
  const double makespan = decode(decision, decoder == Decoder::serial, true, times);
  if (problem_.memory == Memory::time && problem_.blocking)
    peak_over_time(problem_, decision.placement, timeline_, makespan, bytes_);
  std::copy(bytes_.peak().begin(), bytes_.peak().end(), peak);
  if (problem_.memory == Memory::step) step_memory_.raise(decision.placement, timeline_, peak);
  return makespan;
}

double Simulator::decode(const Decision& decision, bool serial, bool count_bytes, bool times) {
  if (overlapped_) return overlapped_->run(decision, serial, count_bytes);
  return serial ? serial_->run(decision, timeline_, times)
                : eager_->run(decision, timeline_, times);
}

}  // namespace situate::sim
