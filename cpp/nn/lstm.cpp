#include "nn/lstm.h"

namespace situate::nn {
namespace {

// One step of h units: `gate` (4h) holds what the hidden state gives to their gates.
template <typename T>
SITUATE_INLINE void activate(T* __restrict gate, const T* __restrict read,
                             const T* __restrict before, int h, T* __restrict cell,
                             T* __restrict hidden) {
  T *enter = gate, *keep = gate + h, *candidate = gate + 2 * h, *show = gate + 3 * h;
  for (int i = 0; i < gates * h; ++i) gate[i] += read[i];
  for (int u = 0; u < 2 * h; ++u) enter[u] = sigmoid(enter[u]);
  for (int u = 0; u < h; ++u) candidate[u] = tanh_of(candidate[u]);
  for (int u = 0; u < h; ++u) show[u] = sigmoid(show[u]);
  for (int u = 0; u < h; ++u) cell[u] = keep[u] * before[u] + enter[u] * candidate[u];
  for (int u = 0; u < h; ++u) hidden[u] = show[u] * tanh_of(cell[u]);
}

SITUATE_EVERY_WIDTH void unit_states(float* gate, const float* read, const float* before, int h,
                                     float* cell, float* hidden) {
  activate(gate, read, before, h, cell, hidden);
}

SITUATE_EVERY_WIDTH void unit_states(double* gate, const double* read, const double* before, int h,
                                     double* cell, double* hidden) {
  activate(gate, read, before, h, cell, hidden);
}

// One step back, of h units: `of_hidden` and `of_cell` are the slopes by the states after
// the step; the latter becomes that before it.
template <typename T>
SITUATE_INLINE void gates_back(const T* __restrict gate, const T* __restrict cell,
                               const T* __restrict before, const T* __restrict of_hidden,
                               T* __restrict of_cell, int h, T* __restrict of_read) {
  for (int u = 0; u < h; ++u) {
    const T enter = gate[u], keep = gate[h + u], candidate = gate[2 * h + u];
    const T show = gate[3 * h + u], level = tanh_of(cell[u]);
    const T slope = of_cell[u] + of_hidden[u] * show * (T{1} - level * level);
    of_read[u] = slope * candidate * enter * (T{1} - enter);
    of_read[h + u] = slope * before[u] * keep * (T{1} - keep);
    of_read[2 * h + u] = slope * enter * (T{1} - candidate * candidate);
    of_read[3 * h + u] = of_hidden[u] * level * show * (T{1} - show);
    of_cell[u] = slope * keep;
  }
}

SITUATE_EVERY_WIDTH void unit_slopes(const float* gate, const float* cell, const float* before,
                                     const float* of_hidden, float* of_cell, int h,
                                     float* of_read) {
  gates_back(gate, cell, before, of_hidden, of_cell, h, of_read);
}

SITUATE_EVERY_WIDTH void unit_slopes(const double* gate, const double* cell, const double* before,
                                     const double* of_hidden, double* of_cell, int h,
                                     double* of_read) {
  gates_back(gate, cell, before, of_hidden, of_cell, h, of_read);
}

}  // namespace

template <typename T>
Layer<T>::Layer(const T* recurrent, int h, Team& team)
    : recurrent_(h, gates * h, team,
                 [=](int i, int row) { return recurrent[static_cast<size_t>(row) * h + i]; }) {}

template <typename T>
void Layer<T>::step(const T* read, const T* hidden, const T* cell, int k, const Passed<T>& to,
                    Team& team) const {
  const size_t h = units();
  multiply(recurrent_, hidden, k, to.gate, team);
  for (size_t s = 0; s < static_cast<size_t>(k); ++s)
    unit_states(to.gate + s * gates * h, read + s * gates * h, cell + s * h, units(),
                to.cell + s * h, to.hidden + s * h);
}

template <typename T>
void pass(const Layer<T>& layer, const T* read, const T* hidden, const T* cell, int steps, int k,
          const Passed<T>& to, Team& team) {
  const size_t states = static_cast<size_t>(k) * layer.units();
  Passed<T> now = to;
  for (int t = 0; t < steps; ++t) {
    layer.step(read, hidden, cell, k, now, team);
    hidden = now.hidden;
    cell = now.cell;
    read += gates * states;
    now = {now.gate + gates * states, now.cell + states, now.hidden + states};
  }
}

template <typename T>
void pass_back(const T* recurrent, int h, const T* first_cell, int steps, int k,
               const Passed<const T>& passed, const Slopes<T>& slopes, Team& team) {
  const Panels<T> weights(gates * h, h, team, [=](int row, int i) {
    return recurrent[static_cast<size_t>(row) * h + i];
  });
  const size_t states = static_cast<size_t>(k) * h;
  std::vector<T> from_later(states);
  T *of_hidden = slopes.first_hidden, *of_cell = slopes.first_cell;
  std::copy_n(slopes.last_cell, states, of_cell);
  for (int t = steps; t-- > 0;) {
    const T* before = t > 0 ? passed.cell + (t - 1) * states : first_cell;
    T* of_read = slopes.read + t * gates * states;
    for (size_t i = 0; i < states; ++i)
      of_hidden[i] = from_later[i] + slopes.hidden[t * states + i];
    for (size_t s = 0; s < static_cast<size_t>(k); ++s)
      unit_slopes(passed.gate + t * gates * states + s * gates * h,
                  passed.cell + t * states + s * h, before + s * h, of_hidden + s * h,
                  of_cell + s * h, h, of_read + s * gates * h);
    multiply(weights, of_read, k, from_later.data(), team);
  }
  std::copy(from_later.begin(), from_later.end(), of_hidden);
}

template class Layer<float>;
template class Layer<double>;
template void pass(const Layer<float>&, const float*, const float*, const float*, int, int,
                   const Passed<float>&, Team&);
template void pass(const Layer<double>&, const double*, const double*, const double*, int, int,
                   const Passed<double>&, Team&);
template void pass_back(const float*, int, const float*, int, int, const Passed<const float>&,
                        const Slopes<float>&, Team&);
template void pass_back(const double*, int, const double*, int, int, const Passed<const double>&,
                        const Slopes<double>&, Team&);

}  // namespace situate::nn
