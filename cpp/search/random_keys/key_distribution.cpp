#include "search/random_keys/key_distribution.h"

#include <map>
#include <utility>

namespace situate::search {

namespace {
float uniform(uint64_t bits_24) {
  return static_cast<float>(static_cast<int32_t>(bits_24)) * 0x1p-24f;
}
}  // namespace

KeyDistribution::KeyDistribution(std::span<const float> alpha, std::span<const float> beta)
    : keys_(alpha.size()) {
  std::map<std::pair<float, float>, uint32_t> known;
  bool plain = true;
  for (size_t key = 0; key < keys_; ++key) {
    const std::pair parameters(alpha[key], beta[key]);
    const auto [place, made] = known.try_emplace(parameters, static_cast<uint32_t>(known.size()));
    if (made) distinct_.emplace_back(alpha[key], beta[key]);
    of_key_.push_back(place->second);
    plain &= parameters == std::pair(1.0f, 1.0f);
  }
  if (plain) of_key_.clear();
}

void KeyDistribution::draw(SplitMix64& random, float* keys) const {
  if (!of_key_.empty()) {
    for (size_t key = 0; key < keys_; ++key)
      keys[key] = static_cast<float>(distinct_[of_key_[key]].draw(random));
    return;
  }
  size_t key = 0;
  for (; key + 1 < keys_; key += 2) {
    const uint64_t bits = random.next();
    keys[key] = uniform(bits >> 40);
    keys[key + 1] = uniform(bits >> 8 & 0xffffff);
  }
  if (key < keys_) keys[key] = uniform(random.next() >> 40);
}

}  // namespace situate::search
