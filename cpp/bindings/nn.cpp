#include "bindings/nn.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "bindings/numpy.h"
#include "nn/additive_attention.h"
#include "nn/device_sampler.h"
#include "nn/grouper.h"
#include "nn/lstm.h"
#include "problem/check.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace situate::bindings {

using namespace nn;
using namespace problem;
using namespace threads;
namespace {

template <typename A>
bool has_shape(const A& array, std::initializer_list<size_t> shape) {
  return std::equal(shape.begin(), shape.end(), array.shape_ptr());
}

// Room for what passes through a layer in T steps.
template <typename T>
struct Kept {
  Kept(size_t steps, size_t k, size_t h)
      : steps(steps),
        k(k),
        h(h),
        gate(steps * k * gates * h),
        cell(steps * k * h),
        hidden(steps * k * h) {}

  Passed<T> to() { return {gate.data(), cell.data(), hidden.data()}; }
  auto arrays() {
    return std::make_tuple(to_numpy(std::move(gate), {steps, k, gates * h}),
                           to_numpy(std::move(cell), {steps, k, h}),
                           to_numpy(std::move(hidden), {steps, k, h}));
  }

  size_t steps, k, h;
  Buffer<T> gate, cell, hidden;
};

template <typename T>
auto lstm_pass(const Array<T, 2>& recurrent, const Array<T, 3>& read, const Array<T, 2>& hidden,
               const Array<T, 2>& cell, int threads) {
  const size_t steps = read.shape(0), k = read.shape(1), h = recurrent.shape(1);
  check(has_shape(recurrent, {gates * h, h}) && has_shape(read, {steps, k, gates * h}) &&
            has_shape(hidden, {k, h}) && has_shape(cell, {k, h}),
        "arrays of a layer differ in shape");
  Kept<T> kept(steps, k, h);
  {
    nb::gil_scoped_release released;
    Team team(threads);
    pass(Layer<T>(recurrent.data(), static_cast<int>(h), team), read.data(), hidden.data(),
         cell.data(), static_cast<int>(steps), static_cast<int>(k), kept.to(), team);
  }
  return kept.arrays();
}

template <typename T>
auto lstm_pass_back(const Array<T, 2>& recurrent, const Array<T, 2>& cell, const Array<T, 3>& gate,
                    const Array<T, 3>& cells, const Array<T, 3>& of_hidden,
                    const Array<T, 2>& of_last_cell, int threads) {
  const size_t steps = gate.shape(0), k = gate.shape(1), h = recurrent.shape(1);
  check(has_shape(recurrent, {gates * h, h}) && has_shape(gate, {steps, k, gates * h}) &&
            has_shape(cells, {steps, k, h}) && has_shape(of_hidden, {steps, k, h}) &&
            has_shape(cell, {k, h}) && has_shape(of_last_cell, {k, h}),
        "arrays of a layer differ in shape");
  Buffer<T> of_read(steps * k * gates * h), of_first(k * h), of_cell(k * h);
  {
    nb::gil_scoped_release released;
    Team team(threads);
    pass_back(recurrent.data(), static_cast<int>(h), cell.data(), static_cast<int>(steps),
              static_cast<int>(k), Passed<const T>{gate.data(), cells.data(), nullptr},
              Slopes<T>{of_hidden.data(), of_last_cell.data(), of_read.data(), of_first.data(),
                        of_cell.data()},
              team);
  }
  return std::make_tuple(to_numpy(std::move(of_read), {steps, k, gates * h}),
                         to_numpy(std::move(of_first), {k, h}),
                         to_numpy(std::move(of_cell), {k, h}));
}

// The transpose of a matrix as PyTorch keeps it: (out, in).
template <typename T>
Panels<T> transposed(const T* matrix, size_t out, size_t in, Team& team) {
  return {static_cast<int>(in), static_cast<int>(out), team,
          [=](int i, int j) { return matrix[j * in + i]; }};
}

template <typename T>
Encoded<T> encoded(const T* outputs, const T* keys, size_t g, size_t h, size_t a, bool additive,
                   Team& team) {
  Panels<T> read(static_cast<int>(g), static_cast<int>(h), team,
                 [=](int i, int j) { return outputs[i * h + j]; });
  if (!additive) return {std::move(read), transposed(keys, g, h, team), {}};
  return {std::move(read), std::nullopt, by_number(keys, static_cast<int>(g), static_cast<int>(a))};
}

// The arguments of `draw_devices`, for k samples of g groups on d devices.
template <typename T>
struct Drawing {
  const Array<T, 2>& words;
  const std::vector<Array<T, 2>>&recurrent, &inputs;
  const std::vector<Array<T, 1>>& biases;
  const Array<T, 3>&hidden, &cell, &outputs, &keys;
  const std::optional<Array<T, 2>>& query;
  const std::optional<Array<T, 1>>& v;
  const Array<T, 2>& head;
  const Array<T, 3>&own, &gumbel;
  const std::optional<Array<T, 3>>& noise;
  T temperature, bound;
  size_t k = gumbel.shape(0), g = gumbel.shape(1), d = gumbel.shape(2);
  size_t layers = recurrent.size(), h = words.shape(1) / gates, a = keys.shape(2);
  size_t b = outputs.shape(0);

  void check_weights() const {
    check(layers > 0 && inputs.size() == layers - 1 && biases.size() == layers - 1,
          "every layer has weights");
    const auto square = [this](const auto& w) { return has_shape(w, {gates * h, h}); };
    const auto row = [this](const auto& bias) { return has_shape(bias, {gates * h}); };
    check(has_shape(words, {d + 1, gates * h}) && has_shape(head, {d, 2 * h}) &&
              std::all_of(recurrent.begin(), recurrent.end(), square) &&
              std::all_of(inputs.begin(), inputs.end(), square) &&
              std::all_of(biases.begin(), biases.end(), row),
          "weights differ in shape");
    check(query.has_value() == v.has_value() &&
              (query ? has_shape(*query, {a, h}) && has_shape(*v, {a}) : a == h),
          "attention compares in one space");
  }

  void check_samples() const {
    check(g > 0 && d > 0 && (b == 1 || b == k) && has_shape(outputs, {b, g, h}) &&
              has_shape(keys, {b, g, a}) && has_shape(hidden, {layers, k, h}) &&
              has_shape(cell, {layers, k, h}) && has_shape(own, {k, g, d}) &&
              (!noise || has_shape(*noise, {k, g, d})),
          "samples differ in number or length");
  }

  Decoder<T> decoder(Team& team) const {
    Decoder<T> made{.words = words.data(),
                    .layers = {},
                    .inputs = {},
                    .biases = {},
                    .encoded = {},
                    .query = {},
                    .v = v ? v->data() : nullptr,
                    .head = transposed(head.data(), d, 2 * h, team),
                    .temperature = temperature,
                    .bound = bound};
    for (const auto& w : recurrent) made.layers.emplace_back(w.data(), static_cast<int>(h), team);
    for (const auto& w : inputs) made.inputs.push_back(transposed(w.data(), gates * h, h, team));
    for (const auto& bias : biases) made.biases.push_back(bias.data());
    if (query) made.query = transposed(query->data(), a, h, team);
    for (size_t i = 0; i < b; ++i)
      made.encoded.push_back(encoded(outputs.data() + i * g * h, keys.data() + i * g * a, g, h, a,
                                     query.has_value(), team));
    return made;
  }

  Draws<T> draws() const {
    return {own.data(), gumbel.data(), noise ? noise->data() : nullptr, hidden.data(), cell.data()};
  }
};

template <typename T>
auto draw_devices(const Array<T, 2>& words, const std::vector<Array<T, 2>>& recurrent,
                  const std::vector<Array<T, 2>>& inputs, const std::vector<Array<T, 1>>& biases,
                  const Array<T, 3>& hidden, const Array<T, 3>& cell, const Array<T, 3>& outputs,
                  const Array<T, 3>& keys, const std::optional<Array<T, 2>>& query,
                  const std::optional<Array<T, 1>>& v, const Array<T, 2>& head,
                  const Array<T, 3>& own, const Array<T, 3>& gumbel,
                  const std::optional<Array<T, 3>>& noise, T temperature, T bound, int threads) {
  const Drawing<T> of{words, recurrent, inputs, biases, hidden, cell,  outputs,     keys,
                      query, v,         head,   own,    gumbel, noise, temperature, bound};
  of.check_weights();
  of.check_samples();
  std::vector<int64_t> devices(of.k * of.g);
  std::vector<Kept<T>> kept;
  kept.reserve(of.layers);
  std::vector<Passed<T>> to;
  for (size_t i = 0; i < of.layers; ++i) to.push_back(kept.emplace_back(of.g, of.k, of.h).to());
  {
    nb::gil_scoped_release released;
    Team team(threads);
    draw(of.decoder(team), of.draws(), static_cast<int>(of.k), static_cast<int>(of.g),
         static_cast<int>(of.d), to, devices.data(), team);
  }
  std::vector<decltype(kept.front().arrays())> passed;
  for (auto& each : kept) passed.push_back(each.arrays());
  return std::make_tuple(to_numpy(std::move(devices), {of.k, of.g}), std::move(passed));
}

template <typename T>
Asked<T> asked_of(const Array<T, 3>& queries, const Array<T, 3>& keys, const Array<T, 1>& v) {
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
auto additive_scores(const Array<T, 3>& queries, const Array<T, 3>& keys, const Array<T, 1>& v,
                     int threads) {
  const Asked<T> asked = asked_of(queries, keys, v);
  Buffer<T> scores;
  {
    nb::gil_scoped_release released;
    Team team(threads);
    scores = scores_of(asked, team);
  }
  return to_numpy(std::move(scores), {queries.shape(0), queries.shape(1), keys.shape(1)});
}

template <typename T>
auto additive_slopes(const Array<T, 3>& queries, const Array<T, 3>& keys, const Array<T, 1>& v,
                     const Array<T, 3>& of_scores, int threads) {
  const Asked<T> asked = asked_of(queries, keys, v);
  check(has_shape(of_scores, {queries.shape(0), queries.shape(1), keys.shape(1)}),
        "every score has a slope");
  AskedSlopes<T> slopes;
  {
    nb::gil_scoped_release released;
    Team team(threads);
    slopes = score_slopes(asked, of_scores.data(), team);
  }
  const size_t b = queries.shape(0), a = v.shape(0);
  return std::make_tuple(to_numpy(std::move(slopes.queries), {b, queries.shape(1), a}),
                         to_numpy(std::move(slopes.keys), {b, keys.shape(1), a}),
                         to_numpy(std::move(slopes.v), {a}));
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
auto draw_group_samples(const Array<T, 2>& states, const Array<T, 2>& weight,
                        const Array<T, 1>& bias, const Start& start, T trust, size_t m,
                        uint64_t seed, T noise, int threads) {
  const GroupLayer<T> layer = group_layer(states, weight, bias, start, trust);
  std::vector<int64_t> groups(m * states.shape(0));
  {
    nb::gil_scoped_release released;
    Team team(threads);
    draw_groups(layer, static_cast<int>(m), seed, noise, groups.data(), team);
  }
  return to_numpy(std::move(groups), {m, states.shape(0)});
}

template <typename T>
auto group_sample_slopes(const Array<T, 2>& states, const Array<T, 2>& weight,
                         const Array<T, 1>& bias, const Start& start, T trust,
                         const Array<int64_t, 2>& groups, const Array<T, 1>& weights, int threads) {
  const GroupLayer<T> layer = group_layer(states, weight, bias, start, trust);
  const size_t m = weights.shape(0), u = states.shape(0), h = states.shape(1), g = bias.shape(0);
  check(has_shape(groups, {m, u}), "every sample has a weight and a group of every unit");
  check(std::all_of(groups.data(), groups.data() + m * u,
                    [g](int64_t group) { return group >= 0 && group < static_cast<int64_t>(g); }),
        "a sample names a group that does not exist");
  GroupSlopes<T> slopes;
  {
    nb::gil_scoped_release released;
    Team team(threads);
    slopes = group_slopes(layer, groups.data(), weights.data(), static_cast<int>(m), team);
  }
  return std::make_tuple(slopes.total, to_numpy(std::move(slopes.states), {u, h}),
                         to_numpy(std::move(slopes.weight), {g, h}),
                         to_numpy(std::move(slopes.bias), {g}));
}

template <typename T>
void bind(nb::module_& module) {
  module.def("additive_scores", &additive_scores<T>, nb::arg("queries").noconvert(),
             nb::arg("keys").noconvert(), nb::arg("v").noconvert(), "threads"_a);
  module.def("additive_slopes", &additive_slopes<T>, nb::arg("queries").noconvert(),
             nb::arg("keys").noconvert(), nb::arg("v").noconvert(),
             nb::arg("of_scores").noconvert(), "threads"_a);
  module.def("draw_groups", &draw_group_samples<T>, nb::kw_only(), nb::arg("states").noconvert(),
             nb::arg("weight").noconvert(), nb::arg("bias").noconvert(),
             nb::arg("start").noconvert().none(), "trust"_a, "m"_a, "seed"_a, "noise"_a,
             "threads"_a);
  module.def("group_slopes", &group_sample_slopes<T>, nb::kw_only(), nb::arg("states").noconvert(),
             nb::arg("weight").noconvert(), nb::arg("bias").noconvert(),
             nb::arg("start").noconvert().none(), "trust"_a, nb::arg("groups").noconvert(),
             nb::arg("weights").noconvert(), "threads"_a);
  module.def("lstm_pass", &lstm_pass<T>, nb::arg("recurrent").noconvert(),
             nb::arg("read").noconvert(), nb::arg("hidden").noconvert(),
             nb::arg("cell").noconvert(), "threads"_a);
  module.def("lstm_pass_back", &lstm_pass_back<T>, nb::arg("recurrent").noconvert(),
             nb::arg("cell").noconvert(), nb::arg("gate").noconvert(), nb::arg("cells").noconvert(),
             nb::arg("of_hidden").noconvert(), nb::arg("of_last_cell").noconvert(), "threads"_a);
  module.def("draw_devices", &draw_devices<T>, nb::kw_only(), nb::arg("words").noconvert(),
             nb::arg("recurrent").noconvert(), nb::arg("inputs").noconvert(),
             nb::arg("biases").noconvert(), nb::arg("hidden").noconvert(),
             nb::arg("cell").noconvert(), nb::arg("outputs").noconvert(),
             nb::arg("keys").noconvert(), nb::arg("query").noconvert().none(),
             nb::arg("v").noconvert().none(), nb::arg("head").noconvert(),
             nb::arg("own").noconvert(), nb::arg("gumbel").noconvert(),
             nb::arg("noise").noconvert().none(), "temperature"_a, "bound"_a, "threads"_a);
}

}  // namespace

void bind_policies(nb::module_& module) {
  bind<float>(module);
  bind<double>(module);
}

}  // namespace situate::bindings
