#include "sharding/option_choice.h"

#include <algorithm>
#include <cstddef>

namespace situate::sharding {

namespace {

// Most choices for the first layers that are kept.
constexpr size_t kMostStates = 4096;
// Prices of bytes that are tried; each is a corner of a convex hull.
constexpr int kMostPrices = 60;
// Relative error of sums.
constexpr double kSumRounding = 1e-12;

}  // namespace

void OptionChoice::clear() {
  first_.assign(1, 0);
  options_.clear();
}

double OptionChoice::least_bytes(double batches) const {
  double sum = 0;
  for (int i = 0; i < layers(); ++i) {
    double least = options_[first_[i]].batch_bytes * batches + options_[first_[i]].fixed_bytes;
    for (int k = first_[i] + 1; k < first_[i + 1]; ++k)
      least = std::min(least, options_[k].batch_bytes * batches + options_[k].fixed_bytes);
    sum += least;
  }
  return sum;
}

OptionChoice::Sums OptionChoice::cheapest(double seconds_price, double bytes_price) {
  Sums sums;
  chosen_.resize(layers());
  for (int i = 0; i < layers(); ++i) {
    int best = first_[i];
    double least = seconds_price * options_[best].seconds + bytes_price * bytes_[best];
    for (int k = best + 1; k < first_[i + 1]; ++k) {
      const double price = seconds_price * options_[k].seconds + bytes_price * bytes_[k];
      const bool ties =
          price == least && (seconds_price > 0 ? bytes_[k] < bytes_[best]
                                               : options_[k].seconds < options_[best].seconds);
      if (price < least || ties) {
        best = k;
        least = price;
      }
    }
    chosen_[i] = best - first_[i];
    sums.seconds += options_[best].seconds;
    sums.bytes += bytes_[best];
  }
  return sums;
}

// The corners of the convex hull of sums, between the fastest choice and that of least bytes, until
// one fits, or the relaxation shows that none does (a Lagrangian dual, found by secants).
OptionChoice::Answer OptionChoice::choose(double batches, double seconds, double bytes) {
  bytes_.resize(options_.size());
  for (size_t k = 0; k < options_.size(); ++k)
    bytes_[k] = options_[k].batch_bytes * batches + options_[k].fixed_bytes;
  Sums fast = cheapest(1, 0);
  if (fast.seconds > seconds) return Answer::kNo;
  if (fast.bytes <= bytes) return Answer::kYes;
  Sums lean = cheapest(0, 1);
  if (lean.bytes > bytes) return Answer::kNo;
  if (lean.seconds <= seconds) return Answer::kYes;
  double price = 0;
  for (int trial = 0; trial < kMostPrices; ++trial) {
    price = (lean.seconds - fast.seconds) / (fast.bytes - lean.bytes);
    const Sums middle = cheapest(1, price);
    const double priced = middle.seconds + price * middle.bytes;
    if (priced - price * bytes > seconds * (1 + kSumRounding)) return Answer::kNo;
    const bool fits = middle.bytes <= bytes;
    if (fits && middle.seconds <= seconds) return Answer::kYes;
    if (priced >= (lean.seconds + price * lean.bytes) * (1 - kSumRounding)) break;
    (fits ? lean : fast) = middle;
  }
  return enumerate(price, seconds, bytes);
}

// Least sums of the layers from each one on, over all of their options.
void OptionChoice::set_rests(double price) {
  const int count = layers();
  for (auto* rest : {&rest_seconds_, &rest_bytes_, &rest_priced_}) rest->assign(count + 1, 0);
  for (int i = count - 1; i >= 0; --i) {
    double seconds = options_[first_[i]].seconds, bytes = bytes_[first_[i]];
    double priced = seconds + price * bytes;
    for (int k = first_[i] + 1; k < first_[i + 1]; ++k) {
      seconds = std::min(seconds, options_[k].seconds);
      bytes = std::min(bytes, bytes_[k]);
      priced = std::min(priced, options_[k].seconds + price * bytes_[k]);
    }
    rest_seconds_[i] = rest_seconds_[i + 1] + seconds;
    rest_bytes_[i] = rest_bytes_[i + 1] + bytes;
    rest_priced_[i] = rest_priced_[i + 1] + priced;
  }
}

bool OptionChoice::may_fit(const Sums& sums, int layer, double price, double seconds,
                           double bytes) const {
  const double most = price * bytes + seconds;
  return sums.seconds + rest_seconds_[layer] <= seconds * (1 + kSumRounding) &&
         sums.bytes + rest_bytes_[layer] <= bytes * (1 + kSumRounding) &&
         sums.seconds + price * sums.bytes + rest_priced_[layer] <= most * (1 + kSumRounding);
}

// All choices, layer by layer, without those that another beats in both sums and those that the
// relaxation of the layers to come excludes. Of too many, every other one is kept, and so on.
OptionChoice::Answer OptionChoice::enumerate(double price, double seconds, double bytes) {
  set_rests(price);
  bool complete = true;
  levels_.resize(layers() + 1);
  levels_[0].assign(1, {{}, -1, -1});
  for (int i = 0; i < layers(); ++i) {
    auto& next = levels_[i + 1];
    next.clear();
    for (size_t parent = 0; parent < levels_[i].size(); ++parent)
      for (int k = first_[i]; k < first_[i + 1]; ++k) {
        const Sums& before = levels_[i][parent].sums;
        const Sums sums{before.seconds + options_[k].seconds, before.bytes + bytes_[k]};
        if (may_fit(sums, i + 1, price, seconds, bytes))
          next.push_back({sums, static_cast<int>(parent), k - first_[i]});
      }
    keep_best(next);
    for (; next.size() > kMostStates; complete = false) keep_half(next);
  }
  auto& last = levels_[layers()];
  std::erase_if(last, [&](const State& state) {
    return state.sums.seconds > seconds || state.sums.bytes > bytes;
  });
  if (last.empty()) return complete ? Answer::kNo : Answer::kUnknown;
  trace_back();
  return Answer::kYes;
}

void OptionChoice::keep_best(std::vector<State>& states) {
  std::sort(states.begin(), states.end(), [](const State& a, const State& b) {
    return a.sums.seconds != b.sums.seconds ? a.sums.seconds < b.sums.seconds
                                            : a.sums.bytes < b.sums.bytes;
  });
  size_t kept = 0;
  for (const State& state : states)
    if (kept == 0 || state.sums.bytes < states[kept - 1].sums.bytes) states[kept++] = state;
  states.resize(kept);
}

void OptionChoice::keep_half(std::vector<State>& states) {
  for (size_t k = 0; 2 * k < states.size(); ++k) states[k] = states[2 * k];
  states.resize((states.size() + 1) / 2);
}

void OptionChoice::trace_back() {
  chosen_.resize(layers());
  int at = 0;
  for (int i = layers(); i > 0; --i) {
    const State& state = levels_[i][at];
    chosen_[i - 1] = state.option;
    at = state.parent;
  }
}

}  // namespace situate::sharding
