#include "nn/additive_attention.h"

#include <algorithm>

#include "nn/simd.h"

namespace situate::nn {
namespace {

// Queries whose slopes by the keys are added up before those of others, whatever the threads.
constexpr int chunk = 32;

template <typename T>
SITUATE_INLINE void score_all(const T* query, const T* keys, const T* v, int a, int g, T* scores) {
  std::fill_n(scores, g, T{0});
  for (int i = 0; i < a; ++i, keys += g)
    for (int m = 0; m < g; ++m) scores[m] += v[i] * sigmoid(query[i] + keys[m]);
}

// Adds to the slopes by keys (a, g) and by v (a), but for the factor v of the former, and writes
// that by a query (a).
template <typename T>
SITUATE_INLINE void slope_all(const T* query, const T* keys, const T* v, const T* of_scores, int a,
                              int g, T* of_query, T* of_keys, T* of_v) {
  for (int i = 0; i < a; ++i, keys += g, of_keys += g) {
    T of_sum[lanes] = {}, of_weight[lanes] = {};
    for (int m = 0; m < g; m += lanes) {
      const int width = std::min(lanes, g - m);
      for (int j = 0; j < width; ++j) {
        const T share = sigmoid(query[i] + keys[m + j]), slope = of_scores[m + j] * share;
        of_weight[j] += slope;
        of_sum[j] += slope * (T{1} - share);
        of_keys[m + j] += slope * (T{1} - share);
      }
    }
    of_query[i] = v[i] * sum_of(of_sum, lanes);
    of_v[i] += sum_of(of_weight, lanes);
  }
}

SITUATE_EVERY_WIDTH void slope(const float* query, const float* keys, const float* v,
                               const float* of_scores, int a, int g, float* of_query,
                               float* of_keys, float* of_v) {
  slope_all(query, keys, v, of_scores, a, g, of_query, of_keys, of_v);
}

SITUATE_EVERY_WIDTH void slope(const double* query, const double* keys, const double* v,
                               const double* of_scores, int a, int g, double* of_query,
                               double* of_keys, double* of_v) {
  slope_all(query, keys, v, of_scores, a, g, of_query, of_keys, of_v);
}

// work(piece, sequence, first query, how many) for chunks of the queries of every sequence.
template <typename T, typename Work>
void share_queries(const Asked<T>& asked, Team& team, const Work& work) {
  const int each = (asked.s + chunk - 1) / chunk;
  team.share(asked.b * each, [&](int piece) {
    const int first = piece % each * chunk;
    work(piece, piece / each, first, std::min(chunk, asked.s - first));
  });
}

template <typename T>
std::vector<std::vector<T>> all_by_number(const Asked<T>& asked) {
  std::vector<std::vector<T>> keys;
  for (size_t i = 0; i < static_cast<size_t>(asked.b); ++i)
    keys.push_back(by_number(asked.keys + i * asked.g * asked.a, asked.g, asked.a));
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
std::vector<T> by_number(const T* keys, int g, int a) {
  std::vector<T> turned(static_cast<size_t>(a) * g);
  for (int m = 0; m < g; ++m)
    for (int i = 0; i < a; ++i) turned[static_cast<size_t>(i) * g + m] = *keys++;
  return turned;
}

template <typename T>
Buffer<T> scores_of(const Asked<T>& asked, Team& team) {
  const size_t s = asked.s, g = asked.g, a = asked.a;
  const auto keys = all_by_number(asked);
  Buffer<T> scores(asked.b * s * g);
  share_queries(asked, team, [&](int, int sequence, int first, int count) {
    for (size_t row = sequence * s + first, end = row + count; row < end; ++row)
      score(asked.queries + row * a, keys[sequence].data(), asked.v, asked.a, asked.g,
            scores.data() + row * g);
  });
  return scores;
}

template <typename T>
AskedSlopes<T> score_slopes(const Asked<T>& asked, const T* of_scores, Team& team) {
  const size_t s = asked.s, g = asked.g, a = asked.a, b = asked.b;
  const auto keys = all_by_number(asked);
  const size_t each = (s + chunk - 1) / chunk;
  std::vector<std::vector<T>> of_keys(b * each), of_v(b * each);
  AskedSlopes<T> result{Buffer<T>(b * s * a), std::vector<T>(b * g * a), std::vector<T>(a)};
  share_queries(asked, team, [&](int piece, int sequence, int first, int count) {
    of_keys[piece].resize(a * g);
    of_v[piece].resize(a);
    for (size_t row = sequence * s + first, end = row + count; row < end; ++row)
      slope(asked.queries + row * a, keys[sequence].data(), asked.v, of_scores + row * g, asked.a,
            asked.g, result.queries.data() + row * a, of_keys[piece].data(), of_v[piece].data());
  });
  for (size_t piece = 0; piece < b * each; ++piece) {
    T* to = result.keys.data() + piece / each * g * a;
    for (size_t i = 0; i < a; ++i) {
      for (size_t m = 0; m < g; ++m) to[m * a + i] += asked.v[i] * of_keys[piece][i * g + m];
      result.v[i] += of_v[piece][i];
    }
  }
  return result;
}

template std::vector<float> by_number(const float*, int, int);
template std::vector<double> by_number(const double*, int, int);
template Buffer<float> scores_of(const Asked<float>&, Team&);
template Buffer<double> scores_of(const Asked<double>&, Team&);
template AskedSlopes<float> score_slopes(const Asked<float>&, const float*, Team&);
template AskedSlopes<double> score_slopes(const Asked<double>&, const double*, Team&);

}  // namespace situate::nn
