// Draws the devices of one group after the other by a decoder LSTM with attention.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/lstm.h"
#include "nn/panels.h"

namespace situate::nn {

// What attention reads of one encoded sequence of g groups, and how it compares: by an additive
// score (D. Bahdanau et al., ICLR 2015) where there are `query` and `v`, by products otherwise.
template <typename T>
struct Encoded {
  Panels<T> outputs;                  // (g, h)
  std::optional<Panels<T>> compared;  // (h, g) keys, of products
  std::vector<T> keys;                // (a, g), of an additive score
};

template <typename T>
struct Decoder {
  const T* words;  // (d + 1, 4h) what the first layer's gates make of a device
  std::vector<Layer<T>> layers;
  std::vector<Panels<T>> inputs;    // (h, 4h) of every layer but the first
  std::vector<const T*> biases;     // (4h), likewise
  std::vector<Encoded<T>> encoded;  // one for all k samples, or k
  std::optional<Panels<T>> query;   // (h, a)
  const T* v = nullptr;             // (a)
  Panels<T> head;                   // (2h, d) of the state beside its context
  T temperature, bound;             // logits are bound tanh(l / temperature), or if that is zero,
                                    // l / temperature

  int h() const { return layers.front().units(); }
};

// What is drawn, for k samples of g groups on d devices.
template <typename T>
struct Draws {
  const T* own;            // (k, g, d) added to the head's outputs
  const T* gumbel;         // (k, g, d) minus infinity where a device is not allowed
  const T* noise;          // (k, g, d) in root mean squares of the logits, or null
  const T *hidden, *cell;  // (layers, k, h) to begin from
};

// Writes devices (k, g), and for every layer what passed through it.
template <typename T>
void draw(const Decoder<T>& decoder, const Draws<T>& draws, int k, int g, int d,
          const std::vector<Passed<T>>& passed, int64_t* devices, Team& team);

}  // namespace situate::nn
