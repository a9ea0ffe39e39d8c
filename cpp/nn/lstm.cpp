#include "nn/lstm.h"

namespace situate::nn {
namespace {

// One step of one sequence. `gate` (4h) holds the product with the last hidden state, and becomes
// the gates' activations:
//   i, f, o = sigmoid(...), g = tanh(...), cell = f * previous + i * g, hidden = o * tanh(cell).
template <typename T>
SITUATE_INLINE void step_forward(T* __restrict gate, const T* __restrict projected,
                                 const T* __restrict previous, int h, T* __restrict cell,
                                 T* __restrict hidden) {
  T *input = gate, *forget = gate + h, *candidate = gate + 2 * h, *output = gate + 3 * h;
  for (int i = 0; i < gates * h; ++i) gate[i] += projected[i];
  for (int u = 0; u < 2 * h; ++u) input[u] = sigmoid(input[u]);  // and the forget gate behind it
  for (int u = 0; u < h; ++u) candidate[u] = tanh_of(candidate[u]);
  for (int u = 0; u < h; ++u) output[u] = sigmoid(output[u]);
  for (int u = 0; u < h; ++u) cell[u] = forget[u] * previous[u] + input[u] * candidate[u];
  for (int u = 0; u < h; ++u) hidden[u] = output[u] * tanh_of(cell[u]);
}

SITUATE_EVERY_WIDTH void sequence_forward(float* gate, const float* projected,
                                          const float* previous, int h, float* cell,
                                          float* hidden) {
  step_forward(gate, projected, previous, h, cell, hidden);
}

SITUATE_EVERY_WIDTH void sequence_forward(double* gate, const double* projected,
                                          const double* previous, int h, double* cell,
                                          double* hidden) {
  step_forward(gate, projected, previous, h, cell, hidden);
}

// One step of one sequence, backward. `d_hidden` and `d_cell` (h) are the gradients by the states
// after the step; `d_cell` becomes that by the cell before it, and `d_projected` (4h) is written.
template <typename T>
SITUATE_INLINE void step_backward(const T* __restrict gate, const T* __restrict cell,
                                  const T* __restrict previous, const T* __restrict d_hidden,
                                  T* __restrict d_cell, int h, T* __restrict d_projected) {
  for (int u = 0; u < h; ++u) {
    const T input = gate[u], forget = gate[h + u], candidate = gate[2 * h + u];
    const T output = gate[3 * h + u], squashed = tanh_of(cell[u]);
    // The cell reaches the scalar through later cells and through this step's hidden state.
    const T through_cell = d_cell[u] + d_hidden[u] * output * (T{1} - squashed * squashed);
    d_projected[u] = through_cell * candidate * input * (T{1} - input);
    d_projected[h + u] = through_cell * previous[u] * forget * (T{1} - forget);
    d_projected[2 * h + u] = through_cell * input * (T{1} - candidate * candidate);
    d_projected[3 * h + u] = d_hidden[u] * squashed * output * (T{1} - output);
    d_cell[u] = through_cell * forget;
  }
}

SITUATE_EVERY_WIDTH void sequence_backward(const float* gate, const float* cell,
                                           const float* previous, const float* d_hidden,
                                           float* d_cell, int h, float* d_projected) {
  step_backward(gate, cell, previous, d_hidden, d_cell, h, d_projected);
}

SITUATE_EVERY_WIDTH void sequence_backward(const double* gate, const double* cell,
                                           const double* previous, const double* d_hidden,
                                           double* d_cell, int h, double* d_projected) {
  step_backward(gate, cell, previous, d_hidden, d_cell, h, d_projected);
}

}  // namespace

template <typename T>
LstmLayer<T>::LstmLayer(const T* recurrent, int h, ThreadPool& pool)
    : recurrent_(h, gates * h, pool,
                 [=](int i, int row) { return recurrent[static_cast<size_t>(row) * h + i]; }) {}

template <typename T>
void LstmLayer<T>::step(const T* projected, const T* hidden, const T* cell, int k,
                        const Activations<T>& to, ThreadPool& pool) const {
  const size_t h = units();
  multiply(recurrent_, hidden, k, to.gate, pool);  // (k, h) x (h, 4h)
  for (size_t s = 0; s < static_cast<size_t>(k); ++s)
    sequence_forward(to.gate + s * gates * h, projected + s * gates * h, cell + s * h, units(),
                     to.cell + s * h, to.hidden + s * h);
}

template <typename T>
void lstm_forward(const LstmLayer<T>& layer, const T* projected, const T* hidden, const T* cell,
                  int steps, int k, const Activations<T>& to, ThreadPool& pool) {
  const size_t states = static_cast<size_t>(k) * layer.units();
  Activations<T> now = to;
  for (int t = 0; t < steps; ++t) {
    layer.step(projected, hidden, cell, k, now, pool);
    hidden = now.hidden;
    cell = now.cell;
    projected += gates * states;
    now = {now.gate + gates * states, now.cell + states, now.hidden + states};
  }
}

template <typename T>
void lstm_backward(const T* recurrent, int h, const T* first_cell, int steps, int k,
                   const Activations<const T>& activations, const LstmGradients<T>& gradients,
                   ThreadPool& pool) {
  const PackedMatrix<T> weights(gates * h, h, pool, [=](int row, int i) {
    return recurrent[static_cast<size_t>(row) * h + i];
  });
  const size_t states = static_cast<size_t>(k) * h;
  std::vector<T> from_later(states);  // (k, h) the gradient that the next step hands back
  T *d_hidden = gradients.first_hidden, *d_cell = gradients.first_cell;
  std::copy_n(gradients.last_cell, states, d_cell);
  for (int t = steps; t-- > 0;) {
    const T* previous = t > 0 ? activations.cell + (t - 1) * states : first_cell;
    T* d_projected = gradients.projected + t * gates * states;
    for (size_t i = 0; i < states; ++i)
      d_hidden[i] = from_later[i] + gradients.hidden[t * states + i];
    for (size_t s = 0; s < static_cast<size_t>(k); ++s)
      sequence_backward(activations.gate + t * gates * states + s * gates * h,
                        activations.cell + t * states + s * h, previous + s * h, d_hidden + s * h,
                        d_cell + s * h, h, d_projected + s * gates * h);
    multiply(weights, d_projected, k, from_later.data(), pool);  // (k, 4h) x (4h, h)
  }
  std::copy(from_later.begin(), from_later.end(), d_hidden);
}

template class LstmLayer<float>;
template class LstmLayer<double>;
template void lstm_forward(const LstmLayer<float>&, const float*, const float*, const float*, int,
                           int, const Activations<float>&, ThreadPool&);
template void lstm_forward(const LstmLayer<double>&, const double*, const double*, const double*,
                           int, int, const Activations<double>&, ThreadPool&);
template void lstm_backward(const float*, int, const float*, int, int,
                            const Activations<const float>&, const LstmGradients<float>&,
                            ThreadPool&);
template void lstm_backward(const double*, int, const double*, int, int,
                            const Activations<const double>&, const LstmGradients<double>&,
                            ThreadPool&);

}  // namespace situate::nn
