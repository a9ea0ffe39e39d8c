// A layer of an LSTM (S. Hochreiter, J. Schmidhuber, Neural Computation 1997), step after step.
//
// What a step reads from outside, x W + b, is known before or looked up; what is left is the
// product with the last hidden state, whose weights are read again in every step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "nn/panels.h"

namespace situate::nn {

constexpr int gates = 4;  // enter, keep, candidate, show: PyTorch's order

// What passed through a layer in T steps of k sequences with h units.
template <typename T>
struct Passed {
  T* gate;    // (T, k, 4h) the four gates, after their nonlinearities
  T* cell;    // (T, k, h)
  T* hidden;  // (T, k, h)
};

template <typename T>
class Layer {
 public:
  // recurrent: (4h, h).
  Layer(const T* recurrent, int h, Team& team);

  int units() const { return recurrent_.rows(); }
  // One step of k sequences: read (k, 4h), the states before it (k, h) each, and where what passes
  // is written.
  void step(const T* read, const T* hidden, const T* cell, int k, const Passed<T>& to,
            Team& team) const;

 private:
  Panels<T> recurrent_;  // (h, 4h)
};

// Of T steps: all of `read` (T, k, 4h) is known.
template <typename T>
void pass(const Layer<T>& layer, const T* read, const T* hidden, const T* cell, int steps, int k,
          const Passed<T>& to, Team& team);

// Slopes of a function of the hidden states and the last cell: those by the latter are given.
template <typename T>
struct Slopes {
  const T* hidden;     // (T, k, h)
  const T* last_cell;  // (k, h)
  T* read;             // (T, k, 4h)
  T* first_hidden;     // (k, h)
  T* first_cell;       // (k, h)
};

// `first_cell` (k, h) is the state before the first step.
template <typename T>
void pass_back(const T* recurrent, int h, const T* first_cell, int steps, int k,
               const Passed<const T>& passed, const Slopes<T>& slopes, Team& team);

}  // namespace situate::nn
