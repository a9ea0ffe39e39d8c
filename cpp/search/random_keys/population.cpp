#include "search/random_keys/population.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace situate::search {

namespace {

constexpr size_t block = Population::block;

constexpr size_t in_blocks(size_t keys) { return (keys + block - 1) / block * block; }

// Without branches, so that compilers choose several keys at once.
void cross_block(const float* elite, const float* other, const uint16_t* inherited,
                 SplitMix64& random, float* child) {
  uint16_t bits[block];
  for (size_t i = 0; i < block; i += 4) {
    const uint64_t word = random.next();
    for (int part = 0; part < 4; ++part) bits[i + part] = static_cast<uint16_t>(word >> 16 * part);
  }
  for (size_t i = 0; i < block; ++i) {
    const uint32_t mask = 0u - (bits[i] <= inherited[i]);
    const auto a = std::bit_cast<uint32_t>(elite[i]), b = std::bit_cast<uint32_t>(other[i]);
    child[i] = std::bit_cast<float>(b ^ ((a ^ b) & mask));
  }
}

}  // namespace

Population::Population(GenerationSizes sizes, size_t count, size_t room)
    : sizes_(sizes), count_(count), stride_(in_blocks(room)) {
  const size_t rows = 2 * static_cast<size_t>(sizes.members) - sizes.elites;
  keys_.resize(rows * stride_);
  fitness_.resize(rows, {std::numeric_limits<int64_t>::max(), 0});
  members_.resize(sizes.members);
  spare_.resize(rows - sizes.members);
  std::iota(members_.begin(), members_.end(), 0);
  std::iota(spare_.begin(), spare_.end(), sizes.members);
}

void Population::breed(int i, std::span<const uint16_t> inherited, const KeyDistribution& mutants,
                       SplitMix64& random) {
  float* child = newcomer(i);
  if (i >= newcomers() - sizes_.mutants) return mutants.draw(random, child);
  const float* elite = member(random.below(sizes_.elites));
  const float* other = member(sizes_.elites + random.below(sizes_.members - sizes_.elites));
  for (size_t key = 0; key < count_; key += block)
    cross_block(elite + key, other + key, inherited.data() + key, random, child + key);
}

void Population::select() {
  if (begun_) std::swap_ranges(spare_.begin(), spare_.end(), members_.begin() + sizes_.elites);
  begun_ = true;
  std::stable_sort(members_.begin(), members_.end(),
                   [&](int32_t a, int32_t b) { return fitness_[a] < fitness_[b]; });
}

}  // namespace situate::search
