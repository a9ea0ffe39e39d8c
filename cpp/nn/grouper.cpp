#include "nn/grouper.h"

#include <algorithm>
#include <cmath>

#include "nn/normal.h"
#include "nn/packed_matrix.h"
#include "random/splitmix64.h"

namespace situate::nn {

using random::SplitMix64;
namespace {

// Units whose logits are held at once: with 256 groups they stay in a core's cache.
constexpr int units_a_block = 64;
// Units whose gradients by the weights are added up before those of other units. The number is
// fixed, so that the order of additions does not depend on the number of threads.
constexpr int units_a_chunk = 1024;

// Adds normal noise to the logits (g) of one unit, see sample_groups.
template <typename T>
SITUATE_INLINE void add_noise(T* logits, int g, T noise, uint64_t key) {
  T square[lanes] = {};
  int j = 0;
  for (; j + lanes <= g; j += lanes)
    for (int i = 0; i < lanes; ++i) square[i] += logits[j + i] * logits[j + i];
  for (; j < g; ++j) square[0] += logits[j] * logits[j];
  const T deviation = noise * std::sqrt(sum_of(square, lanes) / static_cast<T>(g));
  for (int i = 0; i < g; ++i) logits[i] += deviation * static_cast<T>(normal(key, i));
}

SITUATE_EVERY_WIDTH float noisy_exponentials(float* logits, int g, float noise, uint64_t key) {
  if (noise > 0) add_noise(logits, g, noise, key);
  return exponentials(logits, g, largest_of(logits, g));
}

SITUATE_EVERY_WIDTH double noisy_exponentials(double* logits, int g, double noise, uint64_t key) {
  if (noise > 0) add_noise(logits, g, noise, key);
  return exponentials(logits, g, largest_of(logits, g));
}

SITUATE_EVERY_WIDTH float exponentials_and_sum(float* logits, int g, float most) {
  return exponentials(logits, g, most);
}

SITUATE_EVERY_WIDTH double exponentials_and_sum(double* logits, int g, double most) {
  return exponentials(logits, g, most);
}

SITUATE_EVERY_WIDTH float largest(const float* x, int n) { return largest_of(x, n); }

SITUATE_EVERY_WIDTH double largest(const double* x, int n) { return largest_of(x, n); }

SITUATE_EVERY_WIDTH void multiply_by(float* x, int n, float by) {
  for (int i = 0; i < n; ++i) x[i] *= by;
}

SITUATE_EVERY_WIDTH void multiply_by(double* x, int n, double by) {
  for (int i = 0; i < n; ++i) x[i] *= by;
}

SITUATE_EVERY_WIDTH void add(const float* x, int n, float* to) {
  for (int i = 0; i < n; ++i) to[i] += x[i];
}

SITUATE_EVERY_WIDTH void add(const double* x, int n, double* to) {
  for (int i = 0; i < n; ++i) to[i] += x[i];
}

template <typename T>
class Logits {
 public:
  Logits(const GroupLayer<T>& layer, ThreadPool& pool)
      : layer_(layer), weight_(layer.hidden, layer.groups, pool, [&](int i, int j) {
          return layer.weight[static_cast<size_t>(j) * layer.hidden + i];
        }) {}

  // (count, g) of the units from `first` on.
  void of(int first, int count, T* logits, ThreadPool& pool) const {
    const size_t g = layer_.groups;
    multiply(weight_, layer_.states + static_cast<size_t>(first) * layer_.hidden, count, logits,
             pool);
    for (int i = 0; i < count; ++i) {
      add(layer_.bias, layer_.groups, logits + i * g);
      if (layer_.start) logits[i * g + layer_.start[first + i]] += layer_.trust;
    }
  }

 private:
  const GroupLayer<T>& layer_;
  const PackedMatrix<T> weight_;
};

// Inverts the cumulative distribution: the first group up to which the weights (g) exceed `target`.
template <typename T>
int64_t inverse_cdf(const T* weights, int g, T target) {
  T below = 0;
  for (int j = 0; j < g; ++j)
    if ((below += weights[j]) > target) return j;
  return g - 1;
}

// Runs work(first, count, pool of one thread) for blocks of `step` units on the threads of the
// pool.
template <typename Work>
void for_each_block(int units, int step, ThreadPool& pool, const Work& work) {
  pool.parallel_for((units + step - 1) / step, [&](int piece) {
    ThreadPool alone(1);
    const int first = piece * step;
    work(first, std::min(step, units - first), alone);
  });
}

// What one chunk of units adds to the log-likelihood and to the gradients by the layer.
template <typename T>
struct ChunkGradients {
  T total = 0;
  std::vector<T> weight, bias;  // (h, g), (g)
};

// Turns the logits (count, g) of units from `first` on into the gradient by them, and returns what
// the units add to the log-likelihood. With p the softmax of a unit's logits and n_j the weights of
// the samples that put it into group j, the gradient by logit j is n_j - p_j sum_i w_i.
template <typename T>
T logit_gradients(const GroupLayer<T>& layer, int first, int count, const int64_t* groups,
                  const T* weights, int m, T* logits) {
  const int g = layer.groups;
  T total = 0, all = 0;
  for (int s = 0; s < m; ++s) all += weights[s];
  for (int i = 0; i < count; ++i, logits += g) {
    const int64_t* sampled = groups + first + i;
    const auto of_sample = [&](int s) -> T& {
      return logits[sampled[static_cast<size_t>(s) * layer.units]];
    };
    for (int s = 0; s < m; ++s) total += weights[s] * of_sample(s);
    const T most = largest(logits, g), sum = exponentials_and_sum(logits, g, most);
    total -= all * (most + std::log(sum));
    multiply_by(logits, g, -all / sum);
    for (int s = 0; s < m; ++s) of_sample(s) += weights[s];
  }
  return total;
}

// The gradients of one block of units after the other, in arrays that all of them use.
template <typename T>
class BlockGradients {
 public:
  BlockGradients(const GroupLayer<T>& layer, const Logits<T>& logits, const PackedMatrix<T>& back,
                 ThreadPool& pool)
      : layer_(layer),
        logits_(logits),
        back_(back),
        pool_(pool),
        d_logits_(static_cast<size_t>(units_a_block) * layer.groups),
        turned_(static_cast<size_t>(units_a_block) * layer.hidden),
        product_(static_cast<size_t>(layer.hidden) * layer.groups) {}

  // Takes the gradient by the logits of `count` units from `first` on. Returns what these units add
  // to the log-likelihood.
  T by_logits(int first, int count, const int64_t* groups, const T* weights, int m) {
    logits_.of(first, count, d_logits_.data(), pool_);
    return logit_gradients(layer_, first, count, groups, weights, m, d_logits_.data());
  }

  // Writes the gradient by the units' states (count, h).
  void write_by_states(int count, T* states) const {
    multiply(back_, d_logits_.data(), count, states, pool_);
  }

  // Adds the gradients by the layer's weights and biases.
  void add_by_layer(int first, int count, ChunkGradients<T>& sums) {
    const size_t g = layer_.groups, h = layer_.hidden;
    for (int i = 0; i < count; ++i) {
      add(d_logits_.data() + i * g, layer_.groups, sums.bias.data());
      for (size_t j = 0; j < h; ++j) turned_[j * count + i] = layer_.states[(first + i) * h + j];
    }
    const PackedMatrix<T> of_units(count, layer_.groups, pool_,
                                   [&](int i, int j) { return d_logits_[i * g + j]; });
    multiply(of_units, turned_.data(), layer_.hidden, product_.data(), pool_);
    add(product_.data(), static_cast<int>(h * g), sums.weight.data());
  }

 private:
  const GroupLayer<T>& layer_;
  const Logits<T>& logits_;
  const PackedMatrix<T>& back_;  // the layer's weights, (g, h)
  ThreadPool& pool_;
  std::vector<T> d_logits_;  // (units, g)
  std::vector<T> turned_;    // (h, units), the states
  std::vector<T> product_;   // (h, g)
};

}  // namespace

template <typename T>
void sample_groups(const GroupLayer<T>& layer, int m, uint64_t seed, T noise, int64_t* groups,
                   ThreadPool& pool) {
  const int g = layer.groups;
  const Logits<T> all(layer, pool);
  for_each_block(layer.units, units_a_block, pool, [&](int first, int count, ThreadPool& alone) {
    std::vector<T> logits(static_cast<size_t>(count) * g);
    all.of(first, count, logits.data(), alone);
    for (int i = 0; i < count; ++i) {
      SplitMix64 random(seed ^ (static_cast<uint64_t>(first + i) << 32));
      T* own = logits.data() + static_cast<size_t>(i) * g;
      const T total = noisy_exponentials(own, g, noise, random.next());
      for (int s = 0; s < m; ++s)
        groups[static_cast<size_t>(s) * layer.units + first + i] =
            inverse_cdf(own, g, static_cast<T>(random.unit()) * total);
    }
  });
}

template <typename T>
GroupGradients<T> group_gradients(const GroupLayer<T>& layer, const int64_t* groups,
                                  const T* weights, int m, ThreadPool& pool) {
  const size_t g = layer.groups, h = layer.hidden;
  const Logits<T> logits(layer, pool);
  const PackedMatrix<T> back(layer.groups, layer.hidden, pool,
                             [&](int i, int j) { return layer.weight[i * h + j]; });
  GroupGradients<T> result{0, Buffer<T>(layer.units * h), std::vector<T>(g * h), std::vector<T>(g)};
  std::vector<ChunkGradients<T>> chunks((layer.units + units_a_chunk - 1) / units_a_chunk);
  for_each_block(layer.units, units_a_chunk, pool, [&](int from, int size, ThreadPool& alone) {
    ChunkGradients<T>& sums = chunks[from / units_a_chunk];
    sums.weight.resize(g * h);
    sums.bias.resize(g);
    BlockGradients<T> block(layer, logits, back, alone);
    for (int first = from; first < from + size; first += units_a_block) {
      const int count = std::min(units_a_block, from + size - first);
      sums.total += block.by_logits(first, count, groups, weights, m);
      block.write_by_states(count, result.states.data() + first * h);
      block.add_by_layer(first, count, sums);
    }
  });
  for (const ChunkGradients<T>& sums : chunks) {
    result.total += sums.total;
    for (size_t i = 0; i < h; ++i)
      for (size_t j = 0; j < g; ++j) result.weight[j * h + i] += sums.weight[i * g + j];
    add(sums.bias.data(), layer.groups, result.bias.data());
  }
  return result;
}

template void sample_groups(const GroupLayer<float>&, int, uint64_t, float, int64_t*, ThreadPool&);
template void sample_groups(const GroupLayer<double>&, int, uint64_t, double, int64_t*,
                            ThreadPool&);
template GroupGradients<float> group_gradients(const GroupLayer<float>&, const int64_t*,
                                               const float*, int, ThreadPool&);
template GroupGradients<double> group_gradients(const GroupLayer<double>&, const int64_t*,
                                                const double*, int, ThreadPool&);

}  // namespace situate::nn
