#include "nn/grouper.h"

#include <algorithm>
#include <cmath>

#include "nn/normal.h"
#include "nn/panels.h"
#include "random/splitmix64.h"

namespace situate::nn {

using random::Random;
namespace {

// Units whose logits are held at once: with 256 groups they stay in a core's cache.
constexpr int at_once = 64;
// Units whose slopes by the weights are added up before those of others, whatever the threads.
constexpr int chunk = 1024;

template <typename T>
SITUATE_INLINE void shake(T* logits, int g, T noise, uint64_t key) {
  T square[lanes] = {};
  int j = 0;
  for (; j + lanes <= g; j += lanes)
    for (int i = 0; i < lanes; ++i) square[i] += logits[j + i] * logits[j + i];
  for (; j < g; ++j) square[0] += logits[j] * logits[j];
  const T size = noise * std::sqrt(sum_of(square, lanes) / static_cast<T>(g));
  for (int i = 0; i < g; ++i) logits[i] += size * static_cast<T>(normal(key, i));
}

SITUATE_EVERY_WIDTH float shaken(float* logits, int g, float noise, uint64_t key) {
  if (noise > 0) shake(logits, g, noise, key);
  return exponentials(logits, g, largest_of(logits, g));
}

SITUATE_EVERY_WIDTH double shaken(double* logits, int g, double noise, uint64_t key) {
  if (noise > 0) shake(logits, g, noise, key);
  return exponentials(logits, g, largest_of(logits, g));
}

SITUATE_EVERY_WIDTH float soften(float* logits, int g, float most) {
  return exponentials(logits, g, most);
}

SITUATE_EVERY_WIDTH double soften(double* logits, int g, double most) {
  return exponentials(logits, g, most);
}

SITUATE_EVERY_WIDTH float largest(const float* x, int n) { return largest_of(x, n); }

SITUATE_EVERY_WIDTH double largest(const double* x, int n) { return largest_of(x, n); }

SITUATE_EVERY_WIDTH void scale(float* x, int n, float by) {
  for (int i = 0; i < n; ++i) x[i] *= by;
}

SITUATE_EVERY_WIDTH void scale(double* x, int n, double by) {
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
  Logits(const GroupLayer<T>& layer, Team& team)
      : layer_(layer), weight_(layer.hidden, layer.groups, team, [&](int i, int j) {
          return layer.weight[static_cast<size_t>(j) * layer.hidden + i];
        }) {}

  // (count, g) of the units from `first` on.
  void of(int first, int count, T* logits, Team& team) const {
    const size_t g = layer_.groups;
    multiply(weight_, layer_.states + static_cast<size_t>(first) * layer_.hidden, count, logits,
             team);
    for (int i = 0; i < count; ++i) {
      add(layer_.bias, layer_.groups, logits + i * g);
      if (layer_.start) logits[i * g + layer_.start[first + i]] += layer_.trust;
    }
  }

 private:
  const GroupLayer<T>& layer_;
  const Panels<T> weight_;
};

// The first group whose cumulative weight exceeds a share of all.
template <typename T>
int64_t found(const T* weights, int g, T target) {
  T below = 0;
  for (int j = 0; j < g; ++j)
    if ((below += weights[j]) > target) return j;
  return g - 1;
}

// work(first, count, a team of one) for all units, `step` at once, shared among the team.
template <typename Work>
void share_units(int units, int step, Team& team, const Work& work) {
  team.share((units + step - 1) / step, [&](int piece) {
    Team alone(1);
    const int first = piece * step;
    work(first, std::min(step, units - first), alone);
  });
}

// What a chunk of units adds to the slopes.
template <typename T>
struct Part {
  T total = 0;
  std::vector<T> weight, bias;  // (h, g), (g)
};

// The logits (count, g) of units from `first` on become slopes by them; the return value is what
// the units add to the sum.
template <typename T>
T slopes_of(const GroupLayer<T>& layer, int first, int count, const int64_t* groups,
            const T* weights, int m, T* logits) {
  const int g = layer.groups;
  T total = 0, all = 0;
  for (int s = 0; s < m; ++s) all += weights[s];
  for (int i = 0; i < count; ++i, logits += g) {
    const int64_t* drawn = groups + first + i;
    const auto of_drawn = [&](int s) -> T& {
      return logits[drawn[static_cast<size_t>(s) * layer.units]];
    };
    for (int s = 0; s < m; ++s) total += weights[s] * of_drawn(s);
    const T most = largest(logits, g), sum = soften(logits, g, most);
    total -= all * (most + std::log(sum));
    scale(logits, g, -all / sum);
    for (int s = 0; s < m; ++s) of_drawn(s) += weights[s];
  }
  return total;
}

}  // namespace

template <typename T>
void draw_groups(const GroupLayer<T>& layer, int m, uint64_t seed, T noise, int64_t* groups,
                 Team& team) {
  const int g = layer.groups;
  const Logits<T> all(layer, team);
  share_units(layer.units, at_once, team, [&](int first, int count, Team& alone) {
    std::vector<T> logits(static_cast<size_t>(count) * g);
    all.of(first, count, logits.data(), alone);
    for (int i = 0; i < count; ++i) {
      Random random(seed ^ (static_cast<uint64_t>(first + i) << 32));
      T* own = logits.data() + static_cast<size_t>(i) * g;
      const T total = shaken(own, g, noise, random.next());
      for (int s = 0; s < m; ++s)
        groups[static_cast<size_t>(s) * layer.units + first + i] =
            found(own, g, static_cast<T>(random.unit()) * total);
    }
  });
}

template <typename T>
GroupSlopes<T> group_slopes(const GroupLayer<T>& layer, const int64_t* groups, const T* weights,
                            int m, Team& team) {
  const size_t g = layer.groups, h = layer.hidden;
  const Logits<T> all(layer, team);
  const Panels<T> back(layer.groups, layer.hidden, team,
                       [&](int i, int j) { return layer.weight[i * h + j]; });
  GroupSlopes<T> result{0, Buffer<T>(layer.units * h), std::vector<T>(g * h), std::vector<T>(g)};
  std::vector<Part<T>> parts((layer.units + chunk - 1) / chunk);
  share_units(layer.units, chunk, team, [&](int from, int size, Team& alone) {
    Part<T>& part = parts[from / chunk];
    part.weight.resize(g * h);
    part.bias.resize(g);
    std::vector<T> slopes(at_once * g), by_state(at_once * h), sums(h * g);
    for (int first = from; first < from + size; first += at_once) {
      const int count = std::min(at_once, from + size - first);
      all.of(first, count, slopes.data(), alone);
      part.total += slopes_of(layer, first, count, groups, weights, m, slopes.data());
      multiply(back, slopes.data(), count, result.states.data() + first * h, alone);
      for (int i = 0; i < count; ++i) {
        add(slopes.data() + i * g, layer.groups, part.bias.data());
        for (size_t j = 0; j < h; ++j) by_state[j * count + i] = layer.states[(first + i) * h + j];
      }
      const Panels<T> of_units(count, layer.groups, alone,
                               [&](int i, int j) { return slopes[i * g + j]; });
      multiply(of_units, by_state.data(), layer.hidden, sums.data(), alone);
      add(sums.data(), static_cast<int>(h * g), part.weight.data());
    }
  });
  for (const Part<T>& part : parts) {
    result.total += part.total;
    for (size_t i = 0; i < h; ++i)
      for (size_t j = 0; j < g; ++j) result.weight[j * h + i] += part.weight[i * g + j];
    add(part.bias.data(), layer.groups, result.bias.data());
  }
  return result;
}

template void draw_groups(const GroupLayer<float>&, int, uint64_t, float, int64_t*, Team&);
template void draw_groups(const GroupLayer<double>&, int, uint64_t, double, int64_t*, Team&);
template GroupSlopes<float> group_slopes(const GroupLayer<float>&, const int64_t*, const float*,
                                         int, Team&);
template GroupSlopes<double> group_slopes(const GroupLayer<double>&, const int64_t*, const double*,
                                          int, Team&);

}  // namespace situate::nn
