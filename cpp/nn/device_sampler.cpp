#include "nn/device_sampler.h"

#include <algorithm>
#include <cmath>

#include "nn/additive_attention.h"

namespace situate::nn {
namespace {

SITUATE_EVERY_WIDTH void normalise(float* scores, int g) { softmax(scores, g); }

SITUATE_EVERY_WIDTH void normalise(double* scores, int g) { softmax(scores, g); }

// What k samples need from step to step.
template <typename T>
struct Room {
  Room(const Decoder<T>& decoder, size_t k, size_t g, size_t d)
      : read(k * gates * decoder.h()),
        query(decoder.query ? k * decoder.query->columns() : 0),
        scores(k * g),
        context(k * decoder.h()),
        beside(2 * context.size()),
        logits(k * d) {}

  std::vector<T> read, query, scores, context, beside, logits;
};

// (k, 4h) what a layer's gates make of the devices, or of the layer below.
template <typename T>
void read_inputs(const Decoder<T>& decoder, size_t layer, const std::vector<int64_t>& devices,
                 const T* below, std::vector<T>& read, Team& team) {
  const size_t k = devices.size(), each = gates * decoder.h();
  if (layer > 0) multiply(decoder.inputs[layer - 1], below, static_cast<int>(k), read.data(), team);
  for (size_t s = 0; s < k; ++s)
    for (size_t i = 0; i < each; ++i)
      if (layer == 0)
        read[s * each + i] = decoder.words[devices[s] * each + i];
      else
        read[s * each + i] += decoder.biases[layer - 1][i];
}

// (k, h) the last layer's states after step t, in which every sample reads a device.
template <typename T>
const T* step(const Decoder<T>& decoder, const Draws<T>& draws, const std::vector<int64_t>& devices,
              size_t t, const std::vector<Passed<T>>& passed, Room<T>& room, Team& team) {
  const size_t states = devices.size() * decoder.h();
  const T* below = nullptr;
  for (size_t layer = 0; layer < decoder.layers.size(); ++layer) {
    read_inputs(decoder, layer, devices, below, room.read, team);
    const Passed<T>& all = passed[layer];
    const T* hidden = t > 0 ? all.hidden + (t - 1) * states : draws.hidden + layer * states;
    const T* cell = t > 0 ? all.cell + (t - 1) * states : draws.cell + layer * states;
    const Passed<T> now{all.gate + t * gates * states, all.cell + t * states,
                        all.hidden + t * states};
    decoder.layers[layer].step(room.read.data(), hidden, cell, static_cast<int>(devices.size()),
                               now, team);
    below = now.hidden;
  }
  return below;
}

// context (r, h) of states (r, h) in one encoded sequence.
template <typename T>
void attend(const Decoder<T>& decoder, const Encoded<T>& to, const T* states, int r, Room<T>& room,
            T* context, Team& team) {
  const int g = to.outputs.rows(), a = decoder.query ? decoder.query->columns() : 0;
  if (decoder.query)
    multiply(*decoder.query, states, r, room.query.data(), team);
  else
    multiply(*to.compared, states, r, room.scores.data(), team);
  team.share(r, [&](int s) {
    T* scores = room.scores.data() + static_cast<size_t>(s) * g;
    if (decoder.query) score(room.query.data() + s * a, to.keys.data(), decoder.v, a, g, scores);
    normalise(scores, g);
  });
  multiply(to.outputs, room.scores.data(), r, context, team);
}

// (k, d) what the states (k, h) make of group t's devices.
template <typename T>
void find_logits(const Decoder<T>& decoder, const T* states, const T* own, size_t step, size_t k,
                 Room<T>& room, Team& team) {
  const size_t h = decoder.h(), d = decoder.head.columns();
  const size_t each = decoder.encoded.size() == 1 ? k : 1;
  for (size_t s = 0; s < k; s += each)
    attend(decoder, decoder.encoded[each == k ? 0 : s], states + s * h, static_cast<int>(each),
           room, room.context.data() + s * h, team);
  for (size_t s = 0; s < k; ++s) {
    std::copy_n(states + s * h, h, room.beside.data() + 2 * s * h);
    std::copy_n(room.context.data() + s * h, h, room.beside.data() + (2 * s + 1) * h);
  }
  multiply(decoder.head, room.beside.data(), static_cast<int>(k), room.logits.data(), team);
  for (size_t s = 0; s < k; ++s)
    for (size_t j = 0; j < d; ++j) {
      T& logit = room.logits[s * d + j];
      logit = (logit + own[s * step + j]) / decoder.temperature;
      if (decoder.bound > 0) logit = decoder.bound * tanh_of(logit);
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
void draw(const Decoder<T>& decoder, const Draws<T>& draws, int k, int g, int d,
          const std::vector<Passed<T>>& passed, int64_t* devices, Team& team) {
  const size_t step_of_sample = static_cast<size_t>(g) * d;
  Room<T> room(decoder, k, g, d);
  std::vector<int64_t> last(k, d);
  for (int t = 0; t < g; ++t) {
    const T* states = step(decoder, draws, last, t, passed, room, team);
    const size_t at = static_cast<size_t>(t) * d;
    find_logits(decoder, states, draws.own + at, step_of_sample, k, room, team);
    const T noise = draws.noise ? root_mean_square(room.logits) : T{0};
    for (int s = 0; s < k; ++s) {
      T* logits = room.logits.data() + static_cast<size_t>(s) * d;
      const size_t first = s * step_of_sample + at;
      for (int j = 0; j < d; ++j)
        logits[j] += draws.gumbel[first + j] + (noise > 0 ? noise * draws.noise[first + j] : T{0});
      last[s] = std::max_element(logits, logits + d) - logits;
      devices[static_cast<size_t>(s) * g + t] = last[s];
    }
  }
}

template void draw(const Decoder<float>&, const Draws<float>&, int, int, int,
                   const std::vector<Passed<float>>&, int64_t*, Team&);
template void draw(const Decoder<double>&, const Draws<double>&, int, int, int,
                   const std::vector<Passed<double>>&, int64_t*, Team&);

}  // namespace situate::nn
