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

void join_parts(std::span<const int32_t> part, int d, float* keys) {
  for (size_t op = 0; op < part.size(); ++op)
    std::copy_n(keys + static_cast<size_t>(part[op]) * d, d, keys + op * d);
}

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

Population::Parents Population::parents(SplitMix64& random) const {
  const float* elite = member(random.below(sizes_.elites));
  return {elite, member(sizes_.elites + random.below(sizes_.members - sizes_.elites))};
}

void Population::cross(Parents parents, std::span<const uint16_t> inherited, SplitMix64& random,
                       float* child) const {
  for (size_t key = 0; key < count_; key += block)
    cross_block(parents.elite + key, parents.other + key, inherited.data() + key, random,
                child + key);
}

void Population::breed(int i, std::span<const uint16_t> inherited, const KeyDistribution& mutants,
                       SplitMix64& random) {
  if (is_mutant(i)) return mutants.draw(random, newcomer(i));
  cross(parents(random), inherited, random, newcomer(i));
}

void Population::breed_parts(int i, std::span<const uint16_t> inherited,
                             const KeyDistribution& mutants, std::span<const int32_t> part, int d,
                             SplitMix64& random) {
  float* child = newcomer(i);
  if (is_mutant(i)) {
    mutants.draw(random, child);
    return join_parts(part, d, child);
  }
  const auto both = parents(random);
  cross(both, inherited, random, child);
  // The part's least op decides, for all of its ops, whose affinities they get.
  std::vector<const float*> parent(part.size());
  for (size_t op = 0; op < part.size(); ++op) {
    const bool decides = part[op] == static_cast<int32_t>(op);
    const bool of_elite = decides && (random.next() & 0xffff) <= inherited[op * d];
    parent[op] = !decides ? parent[part[op]] : of_elite ? both.elite : both.other;
    std::copy_n(parent[op] + op * d, d, child + op * d);
  }
}

void Population::select() {
  if (begun_) std::swap_ranges(spare_.begin(), spare_.end(), members_.begin() + sizes_.elites);
  begun_ = true;
  std::stable_sort(members_.begin(), members_.end(),
                   [&](int32_t a, int32_t b) { return fitness_[a] < fitness_[b]; });
}

}  // namespace situate::search
