#include "search/random_keys/key_distribution.h"

#include <map>
#include <utility>

namespace situate::search {

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
  if (of_key_.empty())
    return draw_pairs(random, keys, [](size_t, uint32_t uniform) {
      return static_cast<float>(static_cast<int32_t>(uniform)) * 0x1p-24f;
    });
  draw_pairs(random, keys,
             [this](size_t key, uint32_t uniform) { return distinct_[of_key_[key]](uniform); });
}

template <typename Key>
void KeyDistribution::draw_pairs(SplitMix64& random, float* keys, Key key_of) const {
  size_t key = 0;
  for (; key + 1 < keys_; key += 2) {
    const uint64_t bits = random.next();
    keys[key] = key_of(key, bits >> 40);
    keys[key + 1] = key_of(key + 1, bits >> 8 & 0xffffff);
  }
  if (key < keys_) keys[key] = key_of(key, random.next() >> 40);
}

}  // namespace situate::search
