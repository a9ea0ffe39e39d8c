// Binds the sampler of devices: the decoder's weights, what it reads, and the draw.
#include "nn/device_sampler.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "bindings/activation_arrays.h"
#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "nn/additive_attention.h"
#include "problem/check.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace situate::bindings {
namespace {

using nn::Activations;
using nn::DeviceSampler;
using nn::EncodedSequence;
using nn::LstmLayer;
using nn::PackedMatrix;
using problem::check;
using threads::ThreadPool;

// An array of single or double precision: all of one draw are of one type.
template <size_t N>
using Floats = nb::ndarray<nb::ro, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

template <typename T, typename A>
const T* numbers(const A& array) {
  if (array.dtype() != nb::dtype<T>()) throw nb::type_error("arrays differ in their type");
  return static_cast<const T*>(array.data());
}

struct SamplerWeights {
  Floats<2> embedding;
  std::vector<Floats<2>> recurrent, inputs;
  std::vector<Floats<1>> biases;
  std::optional<Floats<2>> query;
  std::optional<Floats<1>> v;
  Floats<2> head;

  size_t layers() const { return recurrent.size(); }
  size_t h() const { return embedding.shape(1) / gates; }

  void check_shapes(size_t d, size_t a) const {
    check(layers() > 0 && inputs.size() == layers() - 1 && biases.size() == layers() - 1,
          "every layer has weights");
    const auto square = [this](const auto& w) { return has_shape(w, {gates * h(), h()}); };
    const auto row = [this](const auto& bias) { return has_shape(bias, {gates * h()}); };
    check(has_shape(embedding, {d + 1, gates * h()}) && has_shape(head, {d, 2 * h()}) &&
              std::all_of(recurrent.begin(), recurrent.end(), square) &&
              std::all_of(inputs.begin(), inputs.end(), square) &&
              std::all_of(biases.begin(), biases.end(), row),
          "weights differ in shape");
    check(query.has_value() == v.has_value() &&
              (query ? has_shape(*query, {a, h()}) && has_shape(*v, {a}) : a == h()),
          "attention compares in one space");
  }
};

struct SamplerInputs {
  Floats<3> outputs, keys, hidden, cell, own, gumbel;
  std::optional<Floats<3>> noise;

  size_t k() const { return gumbel.shape(0); }
  size_t g() const { return gumbel.shape(1); }
  size_t d() const { return gumbel.shape(2); }
  size_t a() const { return keys.shape(2); }
  size_t sequences() const { return outputs.shape(0); }

  void check_shapes(size_t layers, size_t h) const {
    const size_t b = sequences();
    check(g() > 0 && d() > 0 && (b == 1 || b == k()) && has_shape(outputs, {b, g(), h}) &&
              has_shape(keys, {b, g(), a()}) && has_shape(hidden, {layers, k(), h}) &&
              has_shape(cell, {layers, k(), h}) && has_shape(own, {k(), g(), d()}) &&
              (!noise || has_shape(*noise, {k(), g(), d()})),
          "samples differ in number or length");
  }
};

// The transpose (in, out) of a matrix as PyTorch keeps it: (out, in).
template <typename T>
PackedMatrix<T> transposed(const T* matrix, size_t out, size_t in, ThreadPool& pool) {
  return {static_cast<int>(in), static_cast<int>(out), pool,
          [=](int i, int j) { return matrix[j * in + i]; }};
}

template <typename T>
EncodedSequence<T> encoded(const SamplerInputs& of, size_t sequence, size_t h, bool additive,
                           ThreadPool& pool) {
  const size_t g = of.g(), a = of.a();
  const T* outputs = numbers<T>(of.outputs) + sequence * g * h;
  const T* keys = numbers<T>(of.keys) + sequence * g * a;
  PackedMatrix<T> read(static_cast<int>(g), static_cast<int>(h), pool,
                       [=](int i, int j) { return outputs[i * h + j]; });
  if (!additive) return {std::move(read), transposed(keys, g, h, pool), {}};
  return {std::move(read), std::nullopt,
          nn::transposed_keys(keys, static_cast<int>(g), static_cast<int>(a))};
}

template <typename T>
DeviceSampler<T> sampler_of(const SamplerWeights& weights, const SamplerInputs& inputs,
                            T temperature, T bound, ThreadPool& pool) {
  const size_t h = weights.h(), d = inputs.d(), a = inputs.a();
  DeviceSampler<T> made{.embedding = numbers<T>(weights.embedding),
                        .layers = {},
                        .inputs = {},
                        .biases = {},
                        .encoded = {},
                        .query = {},
                        .v = weights.v ? numbers<T>(*weights.v) : nullptr,
                        .head = transposed(numbers<T>(weights.head), d, 2 * h, pool),
                        .temperature = temperature,
                        .bound = bound};
  for (const auto& w : weights.recurrent)
    made.layers.emplace_back(numbers<T>(w), static_cast<int>(h), pool);
  for (const auto& w : weights.inputs)
    made.inputs.push_back(transposed(numbers<T>(w), gates * h, h, pool));
  for (const auto& bias : weights.biases) made.biases.push_back(numbers<T>(bias));
  if (weights.query) made.query = transposed(numbers<T>(*weights.query), a, h, pool);
  for (size_t i = 0; i < inputs.sequences(); ++i)
    made.encoded.push_back(encoded<T>(inputs, i, h, weights.query.has_value(), pool));
  return made;
}

template <typename T>
nb::object sampled(const SamplerWeights& weights, const SamplerInputs& inputs, T temperature,
                   T bound, int threads) {
  const size_t k = inputs.k(), g = inputs.g(), d = inputs.d();
  const nn::SampleInputs<T> of{numbers<T>(inputs.own), numbers<T>(inputs.gumbel),
                               inputs.noise ? numbers<T>(*inputs.noise) : nullptr,
                               numbers<T>(inputs.hidden), numbers<T>(inputs.cell)};
  std::vector<int64_t> devices(k * g);
  std::vector<ActivationArrays<T>> layers;
  layers.reserve(weights.layers());
  std::vector<Activations<T>> to;
  for (size_t i = 0; i < weights.layers(); ++i)
    to.push_back(layers.emplace_back(g, k, weights.h()).pointers());
  {
    nb::gil_scoped_release released;
    ThreadPool pool(threads);
    const auto sampler = sampler_of<T>(weights, inputs, temperature, bound, pool);
    nn::sample_devices(sampler, of, static_cast<int>(k), static_cast<int>(g), static_cast<int>(d),
                       to, devices.data(), pool);
  }
  std::vector<decltype(layers.front().arrays())> activations;
  for (auto& layer : layers) activations.push_back(layer.arrays());
  return nb::cast(std::make_tuple(to_numpy(std::move(devices), {k, g}), std::move(activations)));
}

nb::object sample_devices(const SamplerWeights& weights, const SamplerInputs& inputs,
                          double temperature, double bound, int threads) {
  weights.check_shapes(inputs.d(), inputs.a());
  inputs.check_shapes(weights.layers(), weights.h());
  if (weights.embedding.dtype() == nb::dtype<float>())
    return sampled<float>(weights, inputs, static_cast<float>(temperature),
                          static_cast<float>(bound), threads);
  return sampled<double>(weights, inputs, temperature, bound, threads);
}

}  // namespace

void bind_device_sampler(nb::module_& module) {
  nb::class_<SamplerWeights>(module, "SamplerWeights", R"(Weights of a decoder LSTM with attention.

All arrays of a sampler are float32, or all float64.

embedding: (d + 1, 4h) the first layer's input projection of a device; row d: of none.
recurrent: (4h, h) of every layer.
inputs, biases: (4h, h), (4h,) of every layer but the first.
query, v: (a, h), (a,) of an additive score; None for dot products.
head: (d, 2h) maps a state and its context to logits.)")
      .def(nb::init<Floats<2>, std::vector<Floats<2>>, std::vector<Floats<2>>,
                    std::vector<Floats<1>>, std::optional<Floats<2>>, std::optional<Floats<1>>,
                    Floats<2>>(),
           nb::kw_only(), nb::arg("embedding").noconvert(), nb::arg("recurrent").noconvert(),
           nb::arg("inputs").noconvert(), nb::arg("biases").noconvert(),
           nb::arg("query").noconvert().none(), nb::arg("v").noconvert().none(),
           nb::arg("head").noconvert());
  nb::class_<SamplerInputs>(module, "SamplerInputs",
                            R"(Inputs of k samples of g groups on d devices.

outputs, keys: (b, g, h), (b, g, a) the encoded groups, b = 1 for all samples or b = k.
hidden, cell: (layers, k, h) states before the first group.
own: (k, g, d) added to the head's outputs.
gumbel: (k, g, d) Gumbel noise, minus infinity where a device is not allowed.
noise: (k, g, d) added to the logits, in root mean squares of these; or None.)")
      .def(nb::init<Floats<3>, Floats<3>, Floats<3>, Floats<3>, Floats<3>, Floats<3>,
                    std::optional<Floats<3>>>(),
           nb::kw_only(), nb::arg("outputs").noconvert(), nb::arg("keys").noconvert(),
           nb::arg("hidden").noconvert(), nb::arg("cell").noconvert(), nb::arg("own").noconvert(),
           nb::arg("gumbel").noconvert(), nb::arg("noise").noconvert().none());
  module.def(
      "sample_devices", &sample_devices, "weights"_a, "inputs"_a, nb::kw_only(), "temperature"_a,
      "bound"_a, "threads"_a,
      nb::sig("def sample_devices(weights: SamplerWeights, inputs: SamplerInputs, *, "
              "temperature: float, bound: float, threads: int) -> "
              "tuple[NDArray[numpy.int64], list[tuple[NDArray, NDArray, NDArray]]]"),
      R"(Devices (k, g), and gates (g, k, 4h), cells and hidden states (g, k, h) of every layer.

temperature, bound: logits l become bound tanh(l / temperature), or l / temperature if bound is 0.)");
}

}  // namespace situate::bindings
