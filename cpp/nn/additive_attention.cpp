#include "nn/additive_attention.h"

#include <algorithm>

#include "nn/simd.h"

namespace situate::nn {
namespace {

// Queries whose gradients by the keys are added up before those of other queries. The number is
// fixed, so that the order of additions does not depend on the number of threads.
constexpr int queries_a_chunk = 32;

template <typename T>
SITUATE_INLINE void score_all(const T* query, const T* keys, const T* v, int a, int g, T* scores) {
  std::fill_n(scores, g, T{0});
  for (int i = 0; i < a; ++i, keys += g)
    for (int m = 0; m < g; ++m) scores[m] += v[i] * sigmoid(query[i] + keys[m]);
}

// Backward of one query (a). With y = sigmoid(query + key), the score's derivative by v is y and by
// query or key is v y (1 - y). Writes `d_query` (a); adds to `d_v` (a) and to `d_keys` (a, g), the
// latter without its factor v, which the caller multiplies in once for all queries.
template <typename T>
SITUATE_INLINE void query_gradient(const T* query, const T* keys, const T* v, const T* d_scores,
                                   int a, int g, T* d_query, T* d_keys, T* d_v) {
  for (int i = 0; i < a; ++i, keys += g, d_keys += g) {
    T query_sum[lanes] = {}, v_sum[lanes] = {};
    for (int m = 0; m < g; m += lanes) {
      const int width = std::min(lanes, g - m);
      for (int j = 0; j < width; ++j) {
        const T y = sigmoid(query[i] + keys[m + j]), by_y = d_scores[m + j] * y;
        v_sum[j] += by_y;
        query_sum[j] += by_y * (T{1} - y);
        d_keys[m + j] += by_y * (T{1} - y);
      }
    }
    d_query[i] = v[i] * sum_of(query_sum, lanes);
    d_v[i] += sum_of(v_sum, lanes);
  }
}

SITUATE_EVERY_WIDTH void backward(const float* query, const float* keys, const float* v,
                                  const float* d_scores, int a, int g, float* d_query,
                                  float* d_keys, float* d_v) {
  query_gradient(query, keys, v, d_scores, a, g, d_query, d_keys, d_v);
}

SITUATE_EVERY_WIDTH void backward(const double* query, const double* keys, const double* v,
                                  const double* d_scores, int a, int g, double* d_query,
                                  double* d_keys, double* d_v) {
  query_gradient(query, keys, v, d_scores, a, g, d_query, d_keys, d_v);
}

// Runs work(chunk, sequence, first query, queries) for every chunk of every sequence's queries.
template <typename T, typename Work>
void for_each_chunk(const AdditiveAttention<T>& of, ThreadPool& pool, const Work& work) {
  const int chunks = (of.s + queries_a_chunk - 1) / queries_a_chunk;  // of a sequence
  pool.parallel_for(of.b * chunks, [&](int chunk) {
    const int first = chunk % chunks * queries_a_chunk;
    work(chunk, chunk / chunks, first, std::min(queries_a_chunk, of.s - first));
  });
}

template <typename T>
std::vector<std::vector<T>> transposed_keys_of_all(const AdditiveAttention<T>& of) {
  std::vector<std::vector<T>> keys;
  for (size_t i = 0; i < static_cast<size_t>(of.b); ++i)
    keys.push_back(transposed_keys(of.keys + i * of.g * of.a, of.g, of.a));
  return keys;
}

}  // namespace

SITUATE_EVERY_WIDTH void score(const float* query, const float* keys, const float* v, int a, int g,
                               float* scores) {
  score_all(query, keys, v, a, g, scores);
}

SITUATE_EVERY_WIDTH void score(const double* query, const double* keys, const double* v, int a,
                               int g, double* scores) {
  score_all(query, keys, v, a, g, scores);
}

template <typename T>
std::vector<T> transposed_keys(const T* keys, int g, int a) {
  std::vector<T> turned(static_cast<size_t>(a) * g);
  for (int m = 0; m < g; ++m)
    for (int i = 0; i < a; ++i) turned[static_cast<size_t>(i) * g + m] = *keys++;
  return turned;
}

template <typename T>
Buffer<T> additive_scores(const AdditiveAttention<T>& of, ThreadPool& pool) {
  const size_t s = of.s, g = of.g, a = of.a;
  const auto keys = transposed_keys_of_all(of);
  Buffer<T> scores(of.b * s * g);
  for_each_chunk(of, pool, [&](int, int sequence, int first, int count) {
    for (size_t row = sequence * s + first, end = row + count; row < end; ++row)
      score(of.queries + row * a, keys[sequence].data(), of.v, of.a, of.g, scores.data() + row * g);
  });
  return scores;
}

template <typename T>
AdditiveGradients<T> additive_gradients(const AdditiveAttention<T>& of, const T* d_scores,
                                        ThreadPool& pool) {
  const size_t s = of.s, g = of.g, a = of.a, b = of.b;
  const auto keys = transposed_keys_of_all(of);
  const size_t chunks = (s + queries_a_chunk - 1) / queries_a_chunk;
  // Of every chunk, (a, g) and (a): added up below in the order of the chunks.
  std::vector<std::vector<T>> d_keys(b * chunks), d_v(b * chunks);
  AdditiveGradients<T> result{Buffer<T>(b * s * a), std::vector<T>(b * g * a), std::vector<T>(a)};
  for_each_chunk(of, pool, [&](int chunk, int sequence, int first, int count) {
    d_keys[chunk].resize(a * g);
    d_v[chunk].resize(a);
    for (size_t row = sequence * s + first, end = row + count; row < end; ++row)
      backward(of.queries + row * a, keys[sequence].data(), of.v, d_scores + row * g, of.a, of.g,
               result.queries.data() + row * a, d_keys[chunk].data(), d_v[chunk].data());
  });
  for (size_t chunk = 0; chunk < b * chunks; ++chunk) {
    T* to = result.keys.data() + chunk / chunks * g * a;  // (g, a) of the chunk's sequence
    for (size_t i = 0; i < a; ++i) {
      for (size_t m = 0; m < g; ++m) to[m * a + i] += of.v[i] * d_keys[chunk][i * g + m];
      result.v[i] += d_v[chunk][i];
    }
  }
  return result;
}

template std::vector<float> transposed_keys(const float*, int, int);
template std::vector<double> transposed_keys(const double*, int, int);
template Buffer<float> additive_scores(const AdditiveAttention<float>&, ThreadPool&);
template Buffer<double> additive_scores(const AdditiveAttention<double>&, ThreadPool&);
template AdditiveGradients<float> additive_gradients(const AdditiveAttention<float>&, const float*,
                                                     ThreadPool&);
template AdditiveGradients<double> additive_gradients(const AdditiveAttention<double>&,
                                                      const double*, ThreadPool&);

}  // namespace situate::nn
