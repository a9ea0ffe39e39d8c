// The Hierarchical Planner's grouper after its hidden layer: a softmax over groups for every unit.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/buffer.h"
#include "threads/thread_pool.h"

namespace situate::nn {

using threads::Team;

// Logits l = B h + b of u units over g groups, and `trust` more for the group in `start`.
template <typename T>
struct GroupLayer {
  int units, groups, hidden;
  const T* states;       // (u, h)
  const T* weight;       // (g, h)
  const T* bias;         // (g)
  const int64_t* start;  // (u), or null
  T trust;
};

// Writes groups (m, u) of m samples. The logits of all m have normal numbers added, with a standard
// deviation of `noise` times the root mean square of the unit's logits.
template <typename T>
void draw_groups(const GroupLayer<T>& layer, int m, uint64_t seed, T noise, int64_t* groups,
                 Team& team);

// sum_i w_i log p(g_i) of groups (m, u) with weights w (m), and its slopes.
template <typename T>
struct GroupSlopes {
  T total;
  Buffer<T> states;
  std::vector<T> weight, bias;
};

template <typename T>
GroupSlopes<T> group_slopes(const GroupLayer<T>& layer, const int64_t* groups, const T* weights,
                            int m, Team& team);

}  // namespace situate::nn
