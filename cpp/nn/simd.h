// Arithmetic that compilers turn into vector instructions (SIMD). A function marked
// SITUATE_EVERY_WIDTH is compiled once for every vector width, and the machine's is chosen when the
// program is loaded.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

// Sums are added up in the same order whatever the width, so results are equal to the last bit.
// Only glibc's loader chooses a version, and does so before sanitizers start, which they do not
// survive.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(SITUATE_SANITIZED)
#define SITUATE_EVERY_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SITUATE_EVERY_WIDTH
#endif
#if defined(__GNUC__)
#define SITUATE_INLINE __attribute__((always_inline)) inline
#else
#define SITUATE_INLINE inline
#endif

namespace situate::nn {

SITUATE_INLINE double exp_of(double x) { return std::exp(x); }

// Within 2 units in the last place between -87 and 88, and as at these beyond: after Cephes (S.
// Moshier), x = n log 2 + r, and a polynomial for exp(r).
SITUATE_INLINE float exp_of(float x) {
  constexpr float to_integer = 12582912.0f;  // 1.5 * 2^23: whatever is added to it is rounded
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float shifted = x * 1.44269504f + to_integer;
  const float n = shifted - to_integer;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(to_integer);
  return (p * r * r + r + 1.0f) * std::bit_cast<float>((exponent + 127) << 23);
}

template <typename T>
SITUATE_INLINE T sigmoid(T x) {
  return T{1} / (T{1} + exp_of(-x));
}

template <typename T>
SITUATE_INLINE T tanh_of(T x) {
  return T{2} * sigmoid(T{2} * x) - T{1};
}

constexpr int lanes = 16;

// The fold of n numbers by `combine`, from `first`: in `lanes` independent partial results, which
// are combined in the end. The order of operations is the same for every vector width.
template <typename T, typename Combine>
SITUATE_INLINE T reduced(const T* x, int n, T first, Combine combine) {
  T lane[lanes];
  for (int j = 0; j < lanes; ++j) lane[j] = first;
  int i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int j = 0; j < lanes; ++j) lane[j] = combine(lane[j], x[i + j]);
  for (; i < n; ++i) lane[0] = combine(lane[0], x[i]);
  for (int j = 1; j < lanes; ++j) lane[0] = combine(lane[0], lane[j]);
  return lane[0];
}

template <typename T>
SITUATE_INLINE T sum_of(const T* x, int n) {
  return reduced(x, n, T{0}, [](T a, T b) { return a + b; });
}

template <typename T>
SITUATE_INLINE T largest_of(const T* x, int n) {
  return reduced(x, n, x[0], [](T a, T b) { return a > b ? a : b; });
}

// Replaces x (n) by exp(x - most) and returns their sum. `most` is the largest of x, so that no
// exponential overflows.
template <typename T>
SITUATE_INLINE T exponentials(T* x, int n, T most) {
  for (int i = 0; i < n; ++i) x[i] = exp_of(x[i] - most);
  return sum_of(x, n);
}

template <typename T>
SITUATE_INLINE void softmax(T* x, int n) {
  const T total = exponentials(x, n, largest_of(x, n));
  for (int i = 0; i < n; ++i) x[i] /= total;
}

}  // namespace situate::nn
