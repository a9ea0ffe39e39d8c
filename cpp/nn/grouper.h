// The last layer of the Hierarchical Planner's grouper (A. Mirhoseini et al., ICLR 2018): a softmax
// over groups for every unit. The (u, g) probabilities are never stored.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/buffer.h"
#include "threads/thread_pool.h"

namespace situate::nn {

using threads::ThreadPool;

// Logits W h + b of u units over g groups, with `trust` added for the group in `start`.
template <typename T>
struct GroupLayer {
  int units, groups, hidden;
  const T* states;       // (u, h)
  const T* weight;       // (g, h)
  const T* bias;         // (g)
  const int64_t* start;  // (u) a group of every unit, or null
  T trust;
};

// Writes groups (m, u) of m samples. Normal noise is added to a unit's logits, the same for all m
// samples; its standard deviation is `noise` times the root mean square of the unit's logits.
template <typename T>
void sample_groups(const GroupLayer<T>& layer, int m, uint64_t seed, T noise, int64_t* groups,
                   ThreadPool& pool);

// The log-likelihood sum_i w_i log p(g_i) of samples g (m, u) with weights w (m), and its
// gradients.
template <typename T>
struct GroupGradients {
  T total;
  Buffer<T> states;             // (u, h)
  std::vector<T> weight, bias;  // (g, h), (g)
};

template <typename T>
GroupGradients<T> group_gradients(const GroupLayer<T>& layer, const int64_t* groups,
                                  const T* weights, int m, ThreadPool& pool);

}  // namespace situate::nn
