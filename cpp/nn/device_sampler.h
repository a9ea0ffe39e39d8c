// Samples the devices of one group after the other from a decoder LSTM with attention, the policy
// of the sequence-to-sequence methods (A. Mirhoseini et al., ICML 2017).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/lstm.h"
#include "nn/packed_matrix.h"

namespace situate::nn {

// An encoded sequence of g groups as attention reads it. Queries are compared with keys by an
// additive score (D. Bahdanau et al., ICLR 2015) where the sampler has `query` and `v`, and by dot
// products (M. Luong et al., EMNLP 2015) otherwise.
template <typename T>
struct EncodedSequence {
  PackedMatrix<T> outputs;                  // (g, h)
  std::optional<PackedMatrix<T>> dot_keys;  // (h, g) for dot products
  std::vector<T> additive_keys;             // (a, g) for the additive score
};

template <typename T>
struct DeviceSampler {
  const T*
      embedding;  // (d + 1, 4h) the first layer's input projection of a device; row d: none yet
  std::vector<LstmLayer<T>> layers;
  std::vector<PackedMatrix<T>> inputs;      // (h, 4h) input weights of every layer but the first
  std::vector<const T*> biases;             // (4h), likewise
  std::vector<EncodedSequence<T>> encoded;  // one for all k samples, or k
  std::optional<PackedMatrix<T>> query;     // (h, a)
  const T* v = nullptr;                     // (a)
  PackedMatrix<T> head;  // (2h, d) maps a state and its context, side by side, to logits
  T temperature, bound;  // logits are bound tanh(l / temperature), or l / temperature if bound is 0

  int h() const { return layers.front().units(); }
};

// The inputs of a draw of k samples of g groups on d devices.
template <typename T>
struct SampleInputs {
  const T* own;            // (k, g, d) added to the head's outputs
  const T* gumbel;         // (k, g, d) Gumbel noise, minus infinity where a device is not allowed
  const T* noise;          // (k, g, d) in root mean squares of the logits, or null
  const T *hidden, *cell;  // (layers, k, h) states before the first group
};

// Writes devices (k, g), and the activations of every layer. The largest of logits with Gumbel
// noise is a draw from their softmax (E. J. Gumbel, 1954).
template <typename T>
void sample_devices(const DeviceSampler<T>& sampler, const SampleInputs<T>& inputs, int k, int g,
                    int d, const std::vector<Activations<T>>& activations, int64_t* devices,
                    ThreadPool& pool);

}  // namespace situate::nn
