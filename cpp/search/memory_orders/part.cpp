#include "search/memory_orders/part.h"

#include <algorithm>
#include <bit>

namespace situate::search {

PartMaker::PartMaker(const LiveTensors& live)
    : live_(live), p_(live.problem()), known_(p_.m, unmet) {}

Part PartMaker::make(std::span<const int32_t> order, std::span<const int32_t> place, int begin,
                     std::span<const int32_t> chunk, int64_t before) {
  place_ = place, chunk_ = chunk, begin_ = begin;
  std::vector<std::vector<int32_t>> ops(*std::max_element(chunk.begin(), chunk.end()) + 1);
  for (int i = begin; i < end(); ++i) ops[chunk[i - begin]].push_back(order[i]);
  Part part{before, {}, {}, {}, {}};
  for (const auto& of_chunk : ops) add_chunk(part, of_chunk);
  forget();
  return part;
}

void PartMaker::add_chunk(Part& part, std::span<const int32_t> ops) {
  note_reads(ops);
  part.needs.push_back(0);
  bool joins = false;
  for (const int op : ops) {
    const auto shared = part.shared.size();
    const auto step = step_of(part, op);
    if (joins) {
      auto& last = part.steps.back();
      last.rise = std::max(last.rise, problem::add_bytes(last.change, step.rise));
      last.change += step.change;
      last.shared_end = step.shared_end;
    } else {
      part.steps.push_back(step);
    }
    // Behind a tensor that may go, more is in use or less.
    joins = part.shared.size() == shared;
  }
  part.needs.back() &= ~chunk_at(place_[ops.front()]);
  part.ends.push_back(static_cast<int32_t>(part.steps.size()));
}

// Notes where a chunk reads each tensor last.
void PartMaker::note_reads(std::span<const int32_t> ops) {
  for (const int op : ops)
    for (const int tensor : p_.inputs_of(op))
      if (const int going = meet(tensor); going >= 0) last_read_[going] = place_[op];
}

// A tensor that the part reads: one of `going_`, if nothing behind it reads or keeps the tensor.
int32_t PartMaker::meet(int tensor) {
  if (known_[tensor] != unmet) return known_[tensor];
  met_.push_back(tensor);
  ChunkSet readers = 0;
  bool kept = p_.output[tensor] || live_.bytes(tensor) == 0;
  for (const int reader : p_.consumers_of(tensor)) {
    if (within(place_[reader])) readers |= chunk_at(place_[reader]);
    kept |= place_[reader] >= end();
  }
  if (kept) return known_[tensor] = stays;
  going_.push_back({live_.bytes(tensor), readers});
  last_read_.push_back(0);
  return known_[tensor] = static_cast<int32_t>(going_.size()) - 1;
}

Part::Step PartMaker::step_of(Part& part, int op) {
  Part::Step step{problem::add_bytes(live_.made(op), p_.workspace[op]), live_.left(op), 0};
  for (const int tensor : p_.inputs_of(op)) {
    const int producer = place_[p_.producer[tensor]];
    if (within(producer)) part.needs.back() |= chunk_at(producer);
    const int going = known_[tensor];
    if (going < 0 || last_read_[going] != place_[op]) continue;
    if (std::has_single_bit(going_[going].readers))
      step.change -= going_[going].bytes;
    else
      part.shared.push_back(going_[going]);
  }
  step.shared_end = static_cast<int32_t>(part.shared.size());
  return step;
}

void PartMaker::forget() {
  for (const int tensor : met_) known_[tensor] = unmet;
  met_.clear();
  going_.clear();
  last_read_.clear();
}

}  // namespace situate::search
