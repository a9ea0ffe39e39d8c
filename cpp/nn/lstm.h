// One layer of an LSTM (S. Hochreiter, J. Schmidhuber, Neural Computation 9(8), 1997), forward and
// backward over all steps of a sequence.
//
// The input projection x W + b of every step is known before the first step, or is looked up; what
// a step itself has to compute is the product with the last hidden state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "nn/packed_matrix.h"

namespace situate::nn {

constexpr int gates = 4;  // input, forget, cell, output: PyTorch's order

// Activations of a layer in T steps of k sequences with h units.
template <typename T>
struct Activations {
  T* gate;    // (T, k, 4h) the four gates, after their nonlinearities
  T* cell;    // (T, k, h)
  T* hidden;  // (T, k, h)
};

template <typename T>
class LstmLayer {
 public:
  // recurrent: (4h, h).
  LstmLayer(const T* recurrent, int h, ThreadPool& pool);

  int units() const { return recurrent_.rows(); }
  // One step of k sequences.
  //   projected: (k, 4h) the input projection x W + b.
  //   hidden, cell: (k, h) the states before the step.
  //   to: where this step's activations are written.
  void step(const T* projected, const T* hidden, const T* cell, int k, const Activations<T>& to,
            ThreadPool& pool) const;

 private:
  PackedMatrix<T> recurrent_;  // (h, 4h)
};

// All steps, from the input projections (T, k, 4h) and the states (k, h) before the first step.
template <typename T>
void lstm_forward(const LstmLayer<T>& layer, const T* projected, const T* hidden, const T* cell,
                  int steps, int k, const Activations<T>& to, ThreadPool& pool);

// Gradients of a scalar that depends on the hidden states of all steps and on the last cell.
template <typename T>
struct LstmGradients {
  const T* hidden;     // (T, k, h) given
  const T* last_cell;  // (k, h)    given
  T* projected;        // (T, k, 4h) computed, as the following
  T* first_hidden;     // (k, h)
  T* first_cell;       // (k, h)
};

// Backpropagation through time. `first_cell` (k, h) is the state before the first step.
template <typename T>
void lstm_backward(const T* recurrent, int h, const T* first_cell, int steps, int k,
                   const Activations<const T>& activations, const LstmGradients<T>& gradients,
                   ThreadPool& pool);

}  // namespace situate::nn
