#include "sharding/stage_division.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace situate::sharding {

namespace {

constexpr int kNone = std::numeric_limits<int>::max() / 2;
// Relative error of sums.
constexpr double kRounding = 1e-9;

int64_t rounded_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

}  // namespace

StageDivision::StageDivision(const Layers& layers)
    : layers_(layers),
      downsets_(static_cast<int>(layers.downsets.size() / layers.layers)),
      words_of_each_(static_cast<int>(layers.layers + 63) / 64),
      layer_work_(layers.layers, std::numeric_limits<double>::infinity()) {
  const auto count = static_cast<int>(layers.layers);
  words_.resize(static_cast<size_t>(downsets_) * words_of_each_);
  for (int a = 0; a < downsets_; ++a)
    for (int v = 0; v < count; ++v)
      if (layers.downsets[static_cast<size_t>(a) * count + v])
        words_[static_cast<size_t>(a) * words_of_each_ + v / 64] |= uint64_t{1} << (v % 64);
  for (size_t g = 0; g < layers.tensor_degrees.size(); ++g)
    for (int v = 0; v < count; ++v)
      for (int64_t k = layers.first[g * count + v]; k < layers.first[g * count + v + 1]; ++k)
        layer_work_[v] = std::min(layer_work_[v], layers.seconds[k] * layers.tensor_degrees[g]);
  work_.resize(downsets_);
  for (int a = 0; a < downsets_; ++a)
    for (int v = 0; v < count; ++v)
      if (layers.downsets[static_cast<size_t>(a) * count + v]) work_[a] += layer_work_[v];
}

bool StageDivision::within(int inner, int outer) const {
  const uint64_t* a = &words_[static_cast<size_t>(inner) * words_of_each_];
  const uint64_t* b = &words_[static_cast<size_t>(outer) * words_of_each_];
  for (int k = 0; k < words_of_each_; ++k)
    if (a[k] & ~b[k]) return false;
  return true;
}

bool StageDivision::in_stage(int layer, int downset, int rest) const {
  const auto bit = [&](int set) {
    return words_[static_cast<size_t>(set) * words_of_each_ + layer / 64] >> (layer % 64) & 1;
  };
  return bit(downset) && !bit(rest);
}

// Devices that so many device-seconds need at least.
int64_t StageDivision::least_devices(double work, double seconds) const {
  const double devices = std::ceil(work * (1 - kRounding) / seconds - kRounding);
  if (!(devices > 0)) return 0;
  return devices > layers_.devices ? layers_.devices + 1 : static_cast<int64_t>(devices);
}

void StageDivision::find_members(int downset, int rest) {
  members_.clear();
  const uint64_t* outer = &words_[static_cast<size_t>(downset) * words_of_each_];
  const uint64_t* inner = &words_[static_cast<size_t>(rest) * words_of_each_];
  for (int k = 0; k < words_of_each_; ++k)
    // Each round takes the lowest bit away.
    for (uint64_t bits = outer[k] & ~inner[k]; bits != 0; bits &= bits - 1)
      members_.push_back(64 * k + std::countr_zero(bits));
}

// The layers of a stage and their options. False if a layer has none of this degree.
bool StageDivision::set_layers(int downset, int rest, int tensor) {
  for (auto* list : {&option_seconds_, &option_weight_, &option_batch_, &option_fixed_})
    list->clear();
  option_first_.assign(1, 0);
  least_seconds_ = least_weight_ = 0;
  find_members(downset, rest);
  for (const int v : members_) {
    double fastest = std::numeric_limits<double>::infinity(), lightest = fastest;
    const int64_t at = static_cast<int64_t>(tensor) * layers_.layers + v;
    if (layers_.first[at] == layers_.first[at + 1]) return false;
    for (int64_t k = layers_.first[at]; k < layers_.first[at + 1]; ++k) {
      double seconds = layers_.seconds[k];
      for (int64_t j = layers_.incident[v]; j < layers_.incident[v + 1]; ++j)
        if (!in_stage(static_cast<int>(layers_.neighbour[j]), downset, rest))
          seconds += layers_.exchange_seconds[layers_.exchange[k] + j - layers_.incident[v]];
      option_seconds_.push_back(seconds);
      option_weight_.push_back(layers_.weight[k]);
      option_batch_.push_back(layers_.batch_bytes[k]);
      option_fixed_.push_back(layers_.fixed_bytes[k]);
      fastest = std::min(fastest, seconds);
      lightest = std::min(lightest, layers_.weight[k]);
    }
    option_first_.push_back(static_cast<int>(option_seconds_.size()));
    least_seconds_ += fastest;
    least_weight_ += lightest;
  }
  return true;
}

// False if the stage takes longer for certain, with so many replicas.
bool StageDivision::may_take(int64_t data, double seconds) const {
  const double share = 1.0 / static_cast<double>(data);
  const double least = least_seconds_ * share + layers_.sync_seconds * (1 - share) * least_weight_;
  return least <= seconds * (1 + kRounding);
}

void StageDivision::set_replicas(int64_t data) {
  const double share = 1.0 / static_cast<double>(data);
  const double sync = layers_.sync_seconds * (1 - share);
  choice_.clear();
  for (size_t i = 0; i < members_.size(); ++i) {
    for (int k = option_first_[i]; k < option_first_[i + 1]; ++k)
      choice_.add_option({option_seconds_[k] * share + sync * option_weight_[k], option_batch_[k],
                          option_fixed_[k]});
    choice_.end_layer();
  }
}

// The most micro-batches that fit in memory, however long the stage takes.
int64_t StageDivision::fitting_batches() const {
  const auto fits = [&](int64_t batches) {
    return choice_.least_bytes(static_cast<double>(batches)) <= layers_.memory;
  };
  if (!fits(1)) return 0;
  int64_t yes = 1, no = layers_.most_replicas + 1;
  while (no - yes > 1) {
    const int64_t middle = (no + yes) / 2;
    (fits(middle) ? yes : no) = middle;
  }
  return yes;
}

// The most micro-batches in flight within the limits, of a range; one less than `least` if none.
int64_t StageDivision::most_batches(int64_t least, int64_t most, double seconds) {
  const auto fits = [&](int64_t batches) {
    const auto answer = choice_.choose(static_cast<double>(batches), seconds, layers_.memory);
    if (answer == OptionChoice::Answer::kUnknown) doubtful_ = true;
    return answer == OptionChoice::Answer::kYes;
  };
  if (most < least) return least - 1;
  if (!fits(least)) return least - 1;
  if (fits(most)) return most;
  int64_t no = most, yes = least;
  while (no - yes > 1) {
    const int64_t middle = (no + yes) / 2;
    (fits(middle) ? yes : no) = middle;
  }
  return yes;
}

// The kinds of a stage within the limit. Where `all` is false, without those that need more
// replicas than another and allow no more after them.
void StageDivision::each_stage(int downset, int rest, double seconds, bool all,
                               const Visit& visit) {
  const int64_t followers = row(rest)[layers_.devices];
  for (size_t g = 0; g < layers_.tensor_degrees.size(); ++g) {
    const int64_t tensor = layers_.tensor_degrees[g];
    if (!set_layers(downset, rest, static_cast<int>(g))) continue;
    // The seconds rise or fall with the replicas throughout.
    if (!may_take(1, seconds) && !may_take(layers_.data_degrees.back(), seconds)) continue;
    set_replicas(1);
    const int64_t fitting = fitting_batches();
    int64_t best = -1;
    for (const int64_t data : layers_.data_degrees) {
      if (data * tensor > layers_.devices) break;
      const auto before = [&](int64_t batches) {
        return std::min(layers_.most_replicas, data * batches) - data;
      };
      const int64_t least = rounded_up(followers + data, data);
      const int64_t most = std::min(fitting, rounded_up(layers_.most_replicas, data));
      const bool useless = !all && before(most) <= best;
      if (most < least || useless || !may_take(data, seconds)) continue;
      set_replicas(data);
      const int64_t batches = most_batches(least, most, seconds);
      if (batches < least || (!all && before(batches) <= best)) continue;
      best = std::max(best, before(batches));
      if (visit({tensor, data, batches, before(batches)})) return;
    }
  }
}

void StageDivision::fill(int downset, int rest, double seconds) {
  each_stage(downset, rest, seconds, false, [&](const Degrees& degrees) {
    const int64_t used = degrees.data * degrees.tensor;
    const int followers = static_cast<int>(degrees.followers);
    const int data = static_cast<int>(degrees.data);
    const int* from = row(rest);
    int* to = row(downset) + used;
    const int64_t count = layers_.devices + 1 - used;
    for (int64_t k = 0; k < count; ++k)
      to[k] = std::min(to[k], from[k] <= followers ? from[k] + data : kNone);
    return false;
  });
}

StageDivision::Outcome StageDivision::divide(double seconds, const std::function<bool()>& stopped) {
  replicas_.assign(static_cast<size_t>(downsets_) * (layers_.devices + 1), kNone);
  doubtful_ = false;
  std::fill_n(row(0), layers_.devices + 1, 0);
  fewest_.assign(downsets_, layers_.devices + 1);
  fewest_[0] = 0;
  for (int a = 1; a < downsets_; ++a) {
    if (stopped()) return Outcome::kStopped;
    // Devices beside those that the layers outside of the downset need at least.
    const int64_t left = layers_.devices - least_devices(work_.back() - work_[a], seconds);
    for (int b = a - 1; b >= 0; --b) {
      const int64_t used = least_devices(work_[a] - work_[b], seconds);
      if (fewest_[b] + std::max<int64_t>(used, 1) <= left && within(b, a)) fill(a, b, seconds);
    }
    const int* to = row(a);
    const int64_t first = std::find_if(to, to + left + 1, [](int r) { return r < kNone; }) - to;
    if (first <= left) fewest_[a] = first;
  }
  if (fewest_.back() > layers_.devices) return doubtful_ ? Outcome::kUnknown : Outcome::kImpossible;
  trace_back(seconds);
  return Outcome::kDivided;
}

void StageDivision::trace_back(double seconds) {
  stages_.clear();
  int downset = downsets_ - 1;
  int64_t devices = fewest_.back();
  while (downset > 0 && find_stage(downset, devices, seconds)) {
  }
}

// A stage that leads to the replicas of the row, and the downset and devices after it.
bool StageDivision::find_stage(int& downset, int64_t& devices, double seconds) {
  const int wanted = row(downset)[devices];
  for (int b = downset - 1; b >= 0; --b) {
    if (fewest_[b] > devices || !within(b, downset)) continue;
    Stage stage{downset, b, 0, 0, {}};
    each_stage(downset, b, seconds, true, [&](const Degrees& degrees) {
      const int64_t used = degrees.data * degrees.tensor;
      if (used > devices) return false;
      const int followers = row(b)[devices - used];
      if (followers > degrees.followers || followers + degrees.data != wanted) return false;
      stage.tensor = static_cast<int>(degrees.tensor);
      stage.data = static_cast<int>(degrees.data);
      set_options(stage, rounded_up(wanted, degrees.data), degrees.batches, seconds);
      return true;
    });
    if (stage.data == 0) continue;
    devices -= static_cast<int64_t>(stage.tensor) * stage.data;
    downset = b;
    stages_.push_back(std::move(stage));
    return true;
  }
  return false;
}

// Fast options for the micro-batches in flight; if none are known, those for more micro-batches.
void StageDivision::set_options(Stage& stage, int64_t batches, int64_t most, double seconds) {
  for (const int64_t count : {batches, most}) {
    const auto answer = choice_.choose(static_cast<double>(count), seconds, layers_.memory);
    if (answer != OptionChoice::Answer::kYes) continue;
    stage.options.assign(choice_.options().begin(), choice_.options().end());
    return;
  }
}

}  // namespace situate::sharding
