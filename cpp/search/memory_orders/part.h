// A part of an order, in chunks that may trade places.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/memory_orders/live_tensors.h"

namespace situate::search {

// Chunks of a part, as the bits of a number.
using ChunkSet = uint64_t;
constexpr int most_chunks = 64;

// What runs before a part and behind it stays there, so that what is in use as it begins and as it
// ends does not depend on the order of its chunks. Ops of a chunk keep their order.
struct Part {
  // Ops in a row of a chunk. As the last of them ends, tensors that other chunks read too may be
  // let go.
  struct Step {
    int64_t rise, change;  // bytes to its fullest moment, and to its end without those tensors
    int32_t shared_end;    // of `shared`, where the step before it ends
  };
  // A tensor that goes with the last of the chunks that read it.
  struct Shared {
    int64_t bytes;
    ChunkSet readers;
  };

  int64_t before;               // bytes in use as it begins
  std::vector<ChunkSet> needs;  // of each chunk: those that it waits for
  std::vector<int32_t> ends;    // of each chunk, in `steps`
  std::vector<Step> steps;
  std::vector<Shared> shared;

  int chunks() const { return static_cast<int>(needs.size()); }
};

// Makes parts of one order after the other.
class PartMaker {
 public:
  explicit PartMaker(const LiveTensors& live);

  // The part of `order` that begins at place `begin`, with the chunk of each of its places:
  // `most_chunks` at most, of which none waits for itself through another. `place` (n): where each
  // op stands in the order, a topological one; `before`: bytes in use as the part begins.
  Part make(std::span<const int32_t> order, std::span<const int32_t> place, int begin,
            std::span<const int32_t> chunk, int64_t before);

 private:
  static constexpr int32_t unmet = -1, stays = -2;

  void note_reads(std::span<const int32_t> ops);
  int32_t meet(int tensor);
  void add_chunk(Part& part, std::span<const int32_t> ops);
  Part::Step step_of(Part& part, int op);
  int end() const { return begin_ + static_cast<int>(chunk_.size()); }
  bool within(int place) const { return begin_ <= place && place < end(); }
  ChunkSet chunk_at(int place) const { return ChunkSet{1} << chunk_[place - begin_]; }
  void forget();

  const LiveTensors& live_;
  const Problem& p_;
  std::span<const int32_t> place_, chunk_;
  int begin_ = 0;
  std::vector<int32_t> known_;       // m: of `going_`, or unmet, or stays
  std::vector<int32_t> met_;         // tensors
  std::vector<Part::Shared> going_;  // tensors that go within the part
  std::vector<int32_t> last_read_;   // of `going_`: the last place in the chunk
};

}  // namespace situate::search
