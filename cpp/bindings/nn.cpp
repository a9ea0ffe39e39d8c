// Binds the sequence and grouper policies' computations: LSTM, attention, samples and gradients.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "bindings/activation_arrays.h"
#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "nn/additive_attention.h"
#include "nn/grouper.h"
#include "nn/lstm.h"
#include "problem/check.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace situate::bindings {
namespace {

using namespace nn;
using problem::check;

template <typename T>
auto forward(const Array<T, 2>& recurrent, const Array<T, 3>& projected, const Array<T, 2>& hidden,
             const Array<T, 2>& cell, int threads) {
  const size_t steps = projected.shape(0), k = projected.shape(1), h = recurrent.shape(1);
  check(has_shape(recurrent, {gates * h, h}) && has_shape(projected, {steps, k, gates * h}) &&
            has_shape(hidden, {k, h}) && has_shape(cell, {k, h}),
        "arrays of a layer differ in shape");
  ActivationArrays<T> made(steps, k, h);
  {
    nb::gil_scoped_release released;
    ThreadPool pool(threads);
    lstm_forward(LstmLayer<T>(recurrent.data(), static_cast<int>(h), pool), projected.data(),
                 hidden.data(), cell.data(), static_cast<int>(steps), static_cast<int>(k),
                 made.pointers(), pool);
  }
  return made.arrays();
}

template <typename T>
auto backward(const Array<T, 2>& recurrent, const Array<T, 2>& cell, const Array<T, 3>& gate,
              const Array<T, 3>& cells, const Array<T, 3>& d_hidden, const Array<T, 2>& d_last_cell,
              int threads) {
  const size_t steps = gate.shape(0), k = gate.shape(1), h = recurrent.shape(1);
  check(has_shape(recurrent, {gates * h, h}) && has_shape(gate, {steps, k, gates * h}) &&
            has_shape(cells, {steps, k, h}) && has_shape(d_hidden, {steps, k, h}) &&
            has_shape(cell, {k, h}) && has_shape(d_last_cell, {k, h}),
        "arrays of a layer differ in shape");
  Buffer<T> d_projected(steps * k * gates * h), d_first_hidden(k * h), d_first_cell(k * h);
  {
    nb::gil_scoped_release released;
    ThreadPool pool(threads);
    lstm_backward(recurrent.data(), static_cast<int>(h), cell.data(), static_cast<int>(steps),
                  static_cast<int>(k), Activations<const T>{gate.data(), cells.data(), nullptr},
                  LstmGradients<T>{d_hidden.data(), d_last_cell.data(), d_projected.data(),
                                   d_first_hidden.data(), d_first_cell.data()},
                  pool);
  }
  return std::make_tuple(to_numpy(std::move(d_projected), {steps, k, gates * h}),
                         to_numpy(std::move(d_first_hidden), {k, h}),
                         to_numpy(std::move(d_first_cell), {k, h}));
}

template <typename T>
AdditiveAttention<T> attention_of(const Array<T, 3>& queries, const Array<T, 3>& keys,
                                  const Array<T, 1>& v) {
  const size_t b = queries.shape(0), s = queries.shape(1), g = keys.shape(1), a = v.shape(0);
  check(has_shape(queries, {b, s, a}) && has_shape(keys, {b, g, a}),
        "queries, keys and weights differ in shape");
  return {static_cast<int>(b),
          static_cast<int>(s),
          static_cast<int>(g),
          static_cast<int>(a),
          queries.data(),
          keys.data(),
          v.data()};
}

template <typename T>
auto scores(const Array<T, 3>& queries, const Array<T, 3>& keys, const Array<T, 1>& v,
            int threads) {
  const AdditiveAttention<T> attention = attention_of(queries, keys, v);
  Buffer<T> made;
  {
    nb::gil_scoped_release released;
    ThreadPool pool(threads);
    made = additive_scores(attention, pool);
  }
  return to_numpy(std::move(made), {queries.shape(0), queries.shape(1), keys.shape(1)});
}

template <typename T>
auto score_gradients(const Array<T, 3>& queries, const Array<T, 3>& keys, const Array<T, 1>& v,
                     const Array<T, 3>& d_scores, int threads) {
  const AdditiveAttention<T> attention = attention_of(queries, keys, v);
  check(has_shape(d_scores, {queries.shape(0), queries.shape(1), keys.shape(1)}),
        "every score has a gradient");
  AdditiveGradients<T> gradients;
  {
    nb::gil_scoped_release released;
    ThreadPool pool(threads);
    gradients = additive_gradients(attention, d_scores.data(), pool);
  }
  const size_t b = queries.shape(0), a = v.shape(0);
  return std::make_tuple(to_numpy(std::move(gradients.queries), {b, queries.shape(1), a}),
                         to_numpy(std::move(gradients.keys), {b, keys.shape(1), a}),
                         to_numpy(std::move(gradients.v), {a}));
}

using Start = std::optional<Array<int64_t, 1>>;

template <typename T>
GroupLayer<T> group_layer(const Array<T, 2>& states, const Array<T, 2>& weight,
                          const Array<T, 1>& bias, const Start& start, T trust) {
  const size_t u = states.shape(0), h = states.shape(1), g = bias.shape(0);
  check(g > 0 && h > 0 && has_shape(weight, {g, h}) && (!start || start->shape(0) == u),
        "a layer over groups differs in shape");
  const auto known = [g](int64_t group) { return group >= 0 && group < static_cast<int64_t>(g); };
  check(!start || std::all_of(start->data(), start->data() + u, known),
        "a unit begins in a group that does not exist");
  return {static_cast<int>(u),
          static_cast<int>(g),
          static_cast<int>(h),
          states.data(),
          weight.data(),
          bias.data(),
          start ? start->data() : nullptr,
          trust};
}

template <typename T>
auto group_samples(const Array<T, 2>& states, const Array<T, 2>& weight, const Array<T, 1>& bias,
                   const Start& start, T trust, size_t m, uint64_t seed, T noise, int threads) {
  const GroupLayer<T> layer = group_layer(states, weight, bias, start, trust);
  std::vector<int64_t> groups(m * states.shape(0));
  {
    nb::gil_scoped_release released;
    ThreadPool pool(threads);
    sample_groups(layer, static_cast<int>(m), seed, noise, groups.data(), pool);
  }
  return to_numpy(std::move(groups), {m, states.shape(0)});
}

template <typename T>
auto group_sample_gradients(const Array<T, 2>& states, const Array<T, 2>& weight,
                            const Array<T, 1>& bias, const Start& start, T trust,
                            const Array<int64_t, 2>& groups, const Array<T, 1>& weights,
                            int threads) {
  const GroupLayer<T> layer = group_layer(states, weight, bias, start, trust);
  const size_t m = weights.shape(0), u = states.shape(0), h = states.shape(1), g = bias.shape(0);
  check(has_shape(groups, {m, u}), "every sample has a weight and a group of every unit");
  check(std::all_of(groups.data(), groups.data() + m * u,
                    [g](int64_t group) { return group >= 0 && group < static_cast<int64_t>(g); }),
        "a sample names a group that does not exist");
  GroupGradients<T> gradients;
  {
    nb::gil_scoped_release released;
    ThreadPool pool(threads);
    gradients = group_gradients(layer, groups.data(), weights.data(), static_cast<int>(m), pool);
  }
  return std::make_tuple(gradients.total, to_numpy(std::move(gradients.states), {u, h}),
                         to_numpy(std::move(gradients.weight), {g, h}),
                         to_numpy(std::move(gradients.bias), {g}));
}

template <typename T>
void bind(nb::module_& module) {
  module.def(
      "additive_scores", &scores<T>, nb::arg("queries").noconvert(), nb::arg("keys").noconvert(),
      nb::arg("v").noconvert(), "threads"_a,
      "Additive scores (b, s, g) of queries (b, s, a) and keys (b, g, a), with weights v (a,).");
  module.def("additive_gradients", &score_gradients<T>, nb::arg("queries").noconvert(),
             nb::arg("keys").noconvert(), nb::arg("v").noconvert(), nb::arg("d_scores").noconvert(),
             "threads"_a, "Gradients by queries, keys and v, from that by the scores (b, s, g).");
  module.def("sample_groups", &group_samples<T>, nb::kw_only(), nb::arg("states").noconvert(),
             nb::arg("weight").noconvert(), nb::arg("bias").noconvert(),
             nb::arg("start").noconvert().none(), "trust"_a, "m"_a, "seed"_a, "noise"_a,
             "threads"_a,
             "Groups (m, u) drawn from the softmax of states (u, h) weight (g, h) + bias (g,).");
  module.def(
      "group_gradients", &group_sample_gradients<T>, nb::kw_only(), nb::arg("states").noconvert(),
      nb::arg("weight").noconvert(), nb::arg("bias").noconvert(),
      nb::arg("start").noconvert().none(), "trust"_a, nb::arg("groups").noconvert(),
      nb::arg("weights").noconvert(), "threads"_a,
      "The weighted log-likelihood of groups (m, u), and its gradients by states, weight, bias.");
  module.def("lstm_forward", &forward<T>, nb::arg("recurrent").noconvert(),
             nb::arg("projected").noconvert(), nb::arg("hidden").noconvert(),
             nb::arg("cell").noconvert(), "threads"_a,
             "Gates (T, k, 4h), cells and hidden states (T, k, h) of a layer, from its input "
             "projections (T, k, 4h) and first states (k, h).");
  module.def("lstm_backward", &backward<T>, nb::arg("recurrent").noconvert(),
             nb::arg("cell").noconvert(), nb::arg("gate").noconvert(), nb::arg("cells").noconvert(),
             nb::arg("d_hidden").noconvert(), nb::arg("d_last_cell").noconvert(), "threads"_a,
             "Gradients by input projections (T, k, 4h) and first states (k, h), from those by the "
             "hidden states (T, k, h) and the last cell (k, h).");
}

}  // namespace

void bind_nn(nb::module_& module) {
  bind<float>(module);
  bind<double>(module);
  bind_device_sampler(module);
}

}  // namespace situate::bindings
