// Counter-based random numbers: number i of a key is a function of both, so that compilers compute
// several at once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "nn/simd.h"

namespace situate::nn {

// Two rounds of the finaliser lowbias32 (C. Wellons, Hash Prospector).
SITUATE_INLINE uint32_t scrambled(uint64_t key, uint32_t i) {
  uint32_t x = i * 0x9e3779b9u ^ static_cast<uint32_t>(key);
  for (int round = 0; round < 2; ++round) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    x ^= static_cast<uint32_t>(key >> 32);
  }
  return x;
}

// Above zero and below one, with 24 bits.
SITUATE_INLINE float uniform(uint64_t key, uint32_t i) {
  return static_cast<float>(static_cast<int32_t>(scrambled(key, i) >> 8)) * 0x1p-24f + 0x1p-25f;
}

// The natural logarithm of a normal (not subnormal) number above zero: x = 2^e (1 + f), and the
// polynomial of Cephes (S. Moshier) for log(1 + f).
SITUATE_INLINE float log_of(float x) {
  const int32_t bits = std::bit_cast<int32_t>(x), root_half = 0x3f3504f3;
  const int32_t exponent = (bits - root_half) >> 23;
  const float f = std::bit_cast<float>(bits - exponent * (1 << 23)) - 1.0f;
  const float e = static_cast<float>(exponent), square = f * f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  return f + (p * f * square - 2.12194440e-4f * e - 0.5f * square) + 0.693359375f * e;
}

// A draw from the standard normal distribution: sqrt(2) erfinv(x) of a uniform x in (-1, 1), with
// erfinv by the polynomials for its middle and its tails (M. Giles, Approximating the erfinv
// function, GPU Computing Gems 2011, single precision).
SITUATE_INLINE float normal(uint64_t key, uint32_t i) {
  const float x = 2.0f * uniform(key, i) - 1.0f;
  const float w = -log_of((1.0f - x) * (1.0f + x));
  const float near = w - 2.5f, far = std::sqrt(w > 5.0f ? w : 5.0f) - 3.0f;
  float p = 2.81022636e-08f;
  p = 3.43273939e-07f + p * near;
  p = -3.5233877e-06f + p * near;
  p = -4.39150654e-06f + p * near;
  p = 0.00021858087f + p * near;
  p = -0.00125372503f + p * near;
  p = -0.00417768164f + p * near;
  p = 0.246640727f + p * near;
  p = 1.50140941f + p * near;
  float q = -0.000200214257f;
  q = 0.000100950558f + q * far;
  q = 0.00134934322f + q * far;
  q = -0.00367342844f + q * far;
  q = 0.00573950773f + q * far;
  q = -0.0076224613f + q * far;
  q = 0.00943887047f + q * far;
  q = 1.00167406f + q * far;
  q = 2.83297682f + q * far;
  return 1.41421356f * x * (w < 5.0f ? p : q);
}

}  // namespace situate::nn
