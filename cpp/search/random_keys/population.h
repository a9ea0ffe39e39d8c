// The chromosomes of a biased random-key genetic algorithm, from one generation to the next.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "random/splitmix64.h"
#include "search/random_keys/key_distribution.h"
#include "search/random_keys/linkage.h"

namespace situate::search {

// Bytes beyond the devices' capacities count before the value. The smaller, the better.
struct Fitness {
  int64_t excess;
  double value;
  auto operator<=>(const Fitness&) const = default;
};

struct GenerationSizes {
  int members, elites, mutants;
};

// Gives the ops of each part (n) the d affinities of its least op.
void join_parts(std::span<const int32_t> part, int d, float* keys);

class Population {
 public:
  // Keys are bred in whole blocks, so that arrays of them need room for one more.
  static constexpr size_t block = 64;

  // Chromosomes are rows of `room` keys, of which `count` evolve.
  Population(GenerationSizes sizes, size_t count, size_t room);

  // Chromosomes that the current generation adds: first all, then all but the elites.
  int newcomers() const { return begun_ ? sizes_.members - sizes_.elites : sizes_.members; }
  float* newcomer(int i) { return row(row_of(i)); }
  Fitness& fitness_of(int i) { return fitness_[row_of(i)]; }
  // Writes newcomer i of a later generation: a child of an elite and another member or, behind all
  // children, a mutant. A child has key k of its elite with probability (inherited[k] + 1) / 2^16;
  // there are `inherited` for all blocks.
  void breed(int i, std::span<const uint16_t> inherited, const KeyDistribution& mutants,
             SplitMix64& random);
  // As above, with the d affinities of ops drawn and inherited by parts (n).
  void breed_parts(int i, std::span<const uint16_t> inherited, const KeyDistribution& mutants,
                   std::span<const int32_t> part, int d, SplitMix64& random);
  // Ends a generation, all newcomers of which have their fitness: the best become elites.
  void select();

  bool begun() const { return begun_; }
  // Members, the best first, once a generation has ended.
  int size() const { return sizes_.members; }
  const float* member(int i) const { return row(members_[i]); }
  Fitness member_fitness(int i) const { return fitness_[members_[i]]; }

 private:
  struct Parents {
    const float *elite, *other;
  };
  Parents parents(SplitMix64& random) const;
  bool is_mutant(int newcomer) const { return newcomer >= newcomers() - sizes_.mutants; }
  void cross(Parents parents, std::span<const uint16_t> inherited, SplitMix64& random,
             float* child) const;
  int32_t row_of(int newcomer) const { return begun_ ? spare_[newcomer] : members_[newcomer]; }
  float* row(int32_t index) { return keys_.data() + static_cast<size_t>(index) * stride_; }
  const float* row(int32_t index) const {
    return keys_.data() + static_cast<size_t>(index) * stride_;
  }

  const GenerationSizes sizes_;
  const size_t count_, stride_;
  bool begun_ = false;
  std::vector<float> keys_;
  std::vector<Fitness> fitness_;          // of every row
  std::vector<int32_t> members_, spare_;  // rows
};

}  // namespace situate::search
