// The additive score of content-based attention (D. Bahdanau et al., ICLR 2015, A.1.2), in the form
// of policies/attention.py: v . sigmoid(query + key). The (b, s, g, a) sums are never stored.
#pragma once

#include <cstddef>
#include <vector>

#include "nn/buffer.h"
#include "threads/thread_pool.h"

namespace situate::nn {

using threads::ThreadPool;

// b sequences of g keys, each compared with s queries in a space of a numbers.
template <typename T>
struct AdditiveAttention {
  int b, s, g, a;
  const T* queries;  // (b, s, a)
  const T* keys;     // (b, g, a)
  const T* v;        // (a)
};

// The keys of one sequence (g, a) as (a, g), so that the loop over keys reads consecutive numbers.
template <typename T>
std::vector<T> transposed_keys(const T* keys, int g, int a);

// Scores (g) of one query (a), from transposed keys (a, g).
void score(const float* query, const float* keys, const float* v, int a, int g, float* scores);
void score(const double* query, const double* keys, const double* v, int a, int g, double* scores);

// Scores (b, s, g).
template <typename T>
Buffer<T> additive_scores(const AdditiveAttention<T>& of, ThreadPool& pool);

template <typename T>
struct AdditiveGradients {
  Buffer<T> queries;       // (b, s, a)
  std::vector<T> keys, v;  // (b, g, a), (a)
};

// Gradients of a scalar that depends on the scores, by which its gradient is `d_scores` (b, s, g).
template <typename T>
AdditiveGradients<T> additive_gradients(const AdditiveAttention<T>& of, const T* d_scores,
                                        ThreadPool& pool);

}  // namespace situate::nn
