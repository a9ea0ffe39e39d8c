// Orders of a part's chunks that use few bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "search/memory_orders/part.h"

namespace situate::search {

// Depth-first search over the sets of chunks that have run, none of them twice. A chunk that fits
// and lets go of all that it makes runs at once: bytes in use are a submodular function of the ops
// that have run, so that no later moment is fuller for it.
class PartSearch {
 public:
  explicit PartSearch(const Part& part);

  // Looks for an order in which at most `limit` bytes are in use at any moment. False where there
  // is none, or where `sets`, which are counted down, are not enough: then they end below zero.
  bool within(int64_t limit, int64_t& sets);

  // Of the order found: its chunks, and bytes in use at its fullest moment.
  const std::vector<int32_t>& order() const { return order_; }
  int64_t peak() const;

 private:
  struct Use {
    int64_t peak, after;
  };
  struct Next {
    int64_t after;
    int32_t chunk;
    auto operator<=>(const Next&) const = default;
  };

  Use use(int chunk, ChunkSet done, int64_t now) const;
  bool is_open(int chunk, ChunkSet done) const;
  std::vector<Next> advance(ChunkSet& done, int64_t& now, int64_t limit);
  bool complete(ChunkSet done, int64_t now, int64_t limit, int64_t& sets);

  const Part& part_;
  const ChunkSet all_;
  std::vector<int32_t> order_;
  std::unordered_set<ChunkSet> seen_;
};

}  // namespace situate::search
