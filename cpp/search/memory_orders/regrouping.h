// Orders made better part by part.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "search/memory_orders/part.h"

namespace situate::search {

// What ends a regrouping early.
struct Effort {
  int64_t sets;                 // of chunks to look at
  std::function<bool()> ended;  // called between two parts
};

// A topological order that uses no more at its fullest moment on one device than `order`, a
// topological one: again and again the parts around that moment, from few ops to all of them, are
// put in a better order, until no part has one, or no more than `target` bytes are in use.
std::vector<int32_t> regrouped_order(const Problem& problem, std::span<const int32_t> order,
                                     int64_t target, const Effort& effort);

// Bytes in use at the fullest moment of the best order of at most `most_chunks` ops, where so many
// sets of them are enough to prove it.
std::optional<int64_t> least_peak(const Problem& problem, int64_t sets);

}  // namespace situate::search
