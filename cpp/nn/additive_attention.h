// The additive score of content-based attention (D. Bahdanau et al., ICLR 2015, A.1.2), in the form
// of policies/attention.py: v . sigmoid(q + key).
#pragma once

#include <cstddef>
#include <vector>

#include "nn/buffer.h"
#include "threads/thread_pool.h"

namespace situate::nn {

using threads::Team;

// b sequences of g keys (b, g, a), each asked by s queries (b, s, a); v is (a).
template <typename T>
struct Asked {
  int b, s, g, a;
  const T *queries, *keys, *v;
};

// Keys (a, g) of one sequence, from (g, a).
template <typename T>
std::vector<T> by_number(const T* keys, int g, int a);

// Scores (g) of one query (a), from keys (a, g).
void score(const float* query, const float* keys, const float* v, int a, int g, float* scores);
void score(const double* query, const double* keys, const double* v, int a, int g, double* scores);

// Scores (b, s, g).
template <typename T>
Buffer<T> scores_of(const Asked<T>& asked, Team& team);

template <typename T>
struct AskedSlopes {
  Buffer<T> queries;
  std::vector<T> keys, v;
};

// Slopes of a function of the scores, whose slopes by them are `of_scores` (b, s, g).
template <typename T>
AskedSlopes<T> score_slopes(const Asked<T>& asked, const T* of_scores, Team& team);

}  // namespace situate::nn
