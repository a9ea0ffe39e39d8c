#include "nn/device_sampler.h"

#include <algorithm>
#include <cmath>

#include "nn/additive_attention.h"

namespace situate::nn {
namespace {

SITUATE_EVERY_WIDTH void normalise(float* scores, int g) { softmax(scores, g); }

SITUATE_EVERY_WIDTH void normalise(double* scores, int g) { softmax(scores, g); }

// Arrays that k samples reuse in every step.
template <typename T>
struct Workspace {
  Workspace(const DeviceSampler<T>& sampler, size_t k, size_t g, size_t d)
      : projected(k * gates * sampler.h()),
        query(sampler.query ? k * sampler.query->columns() : 0),
        scores(k * g),
        context(k * sampler.h()),
        joined(2 * context.size()),
        logits(k * d) {}

  std::vector<T> projected;  // (k, 4h)
  std::vector<T> query;      // (k, a)
  std::vector<T> scores;     // (k, g)
  std::vector<T> context;    // (k, h)
  std::vector<T> joined;     // (k, 2h)
  std::vector<T> logits;     // (k, d)
};

// (k, 4h) the input projection of a layer: looked up by the samples' last devices in the first
// layer, and made of the states (k, h) of the layer below in the others.
template <typename T>
void project_inputs(const DeviceSampler<T>& sampler, size_t layer,
                    const std::vector<int64_t>& devices, const T* below, std::vector<T>& projected,
                    ThreadPool& pool) {
  const size_t k = devices.size(), width = gates * sampler.h();
  if (layer > 0)
    multiply(sampler.inputs[layer - 1], below, static_cast<int>(k), projected.data(), pool);
  for (size_t s = 0; s < k; ++s)
    for (size_t i = 0; i < width; ++i)
      if (layer == 0)
        projected[s * width + i] = sampler.embedding[devices[s] * width + i];
      else
        projected[s * width + i] += sampler.biases[layer - 1][i];
}

// Runs step t of all layers, in which every sample reads its last device. Returns the last layer's
// hidden states (k, h).
template <typename T>
const T* step(const DeviceSampler<T>& sampler, const SampleInputs<T>& inputs,
              const std::vector<int64_t>& devices, size_t t,
              const std::vector<Activations<T>>& activations, Workspace<T>& work,
              ThreadPool& pool) {
  const size_t states = devices.size() * sampler.h();
  const T* below = nullptr;
  for (size_t layer = 0; layer < sampler.layers.size(); ++layer) {
    project_inputs(sampler, layer, devices, below, work.projected, pool);
    const Activations<T>& all = activations[layer];
    const T* hidden = t > 0 ? all.hidden + (t - 1) * states : inputs.hidden + layer * states;
    const T* cell = t > 0 ? all.cell + (t - 1) * states : inputs.cell + layer * states;
    const Activations<T> now{all.gate + t * gates * states, all.cell + t * states,
                             all.hidden + t * states};
    sampler.layers[layer].step(work.projected.data(), hidden, cell,
                               static_cast<int>(devices.size()), now, pool);
    below = now.hidden;
  }
  return below;
}

// Contexts (r, h) of r states (r, h): the encoder's outputs (g, h), weighted by the softmax of the
// states' scores (r, g).
template <typename T>
void attend(const DeviceSampler<T>& sampler, const EncodedSequence<T>& to, const T* states, int r,
            Workspace<T>& work, T* context, ThreadPool& pool) {
  const int g = to.outputs.rows(), a = sampler.query ? sampler.query->columns() : 0;
  if (sampler.query)
    multiply(*sampler.query, states, r, work.query.data(), pool);
  else
    multiply(*to.dot_keys, states, r, work.scores.data(), pool);
  pool.parallel_for(r, [&](int s) {
    T* scores = work.scores.data() + static_cast<size_t>(s) * g;
    if (sampler.query)
      score(work.query.data() + s * a, to.additive_keys.data(), sampler.v, a, g, scores);
    normalise(scores, g);
  });
  multiply(to.outputs, work.scores.data(), r, context, pool);
}

// Logits (k, d) of one group's devices from the states (k, h). `own` points at the group's numbers
// of the first sample, those of the next are `stride` further.
template <typename T>
void find_logits(const DeviceSampler<T>& sampler, const T* states, const T* own, size_t stride,
                 size_t k, Workspace<T>& work, ThreadPool& pool) {
  const size_t h = sampler.h(), d = sampler.head.columns();
  // One encoded sequence serves all samples in one product; otherwise each sample has its own.
  const size_t rows = sampler.encoded.size() == 1 ? k : 1;
  for (size_t s = 0; s < k; s += rows)
    attend(sampler, sampler.encoded[rows == k ? 0 : s], states + s * h, static_cast<int>(rows),
           work, work.context.data() + s * h, pool);
  for (size_t s = 0; s < k; ++s) {
    std::copy_n(states + s * h, h, work.joined.data() + 2 * s * h);
    std::copy_n(work.context.data() + s * h, h, work.joined.data() + (2 * s + 1) * h);
  }
  multiply(sampler.head, work.joined.data(), static_cast<int>(k), work.logits.data(), pool);
  for (size_t s = 0; s < k; ++s)
    for (size_t j = 0; j < d; ++j) {
      T& logit = work.logits[s * d + j];
      logit = (logit + own[s * stride + j]) / sampler.temperature;
      if (sampler.bound > 0) logit = sampler.bound * tanh_of(logit);
    }
}

template <typename T>
T root_mean_square(const std::vector<T>& values) {
  double total = 0;
  for (const T value : values) total += static_cast<double>(value) * value;
  return static_cast<T>(std::sqrt(total / static_cast<double>(values.size())));
}

}  // namespace

template <typename T>
void sample_devices(const DeviceSampler<T>& sampler, const SampleInputs<T>& inputs, int k, int g,
                    int d, const std::vector<Activations<T>>& activations, int64_t* devices,
                    ThreadPool& pool) {
  const size_t stride = static_cast<size_t>(g) * d;  // numbers a sample of a (k, g, d) array
  Workspace<T> work(sampler, k, g, d);
  std::vector<int64_t> last(k, d);  // row d of the embedding stands for no device yet
  for (int t = 0; t < g; ++t) {
    const T* states = step(sampler, inputs, last, t, activations, work, pool);
    const size_t at = static_cast<size_t>(t) * d;
    find_logits(sampler, states, inputs.own + at, stride, k, work, pool);
    const T scale = inputs.noise ? root_mean_square(work.logits) : T{0};
    for (int s = 0; s < k; ++s) {
      T* logits = work.logits.data() + static_cast<size_t>(s) * d;
      const size_t first = s * stride + at;
      for (int j = 0; j < d; ++j)
        logits[j] +=
            inputs.gumbel[first + j] + (scale > 0 ? scale * inputs.noise[first + j] : T{0});
      last[s] = std::max_element(logits, logits + d) - logits;
      devices[static_cast<size_t>(s) * g + t] = last[s];
    }
  }
}

template void sample_devices(const DeviceSampler<float>&, const SampleInputs<float>&, int, int, int,
                             const std::vector<Activations<float>>&, int64_t*, ThreadPool&);
template void sample_devices(const DeviceSampler<double>&, const SampleInputs<double>&, int, int,
                             int, const std::vector<Activations<double>>&, int64_t*, ThreadPool&);

}  // namespace situate::nn
