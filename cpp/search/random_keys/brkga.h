// The biased random-key genetic algorithm (J. F. Goncalves and M. G. C. Resende, Journal of
// Heuristics 17, 2011) over the chromosomes of REGAL (A. Paliwal et al., ICLR 2020, 3.2).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "search/goal.h"
#include "search/random_keys/key_distribution.h"
#include "search/random_keys/population.h"
#include "search/random_keys/random_keys.h"
#include "simulation/simulator.h"

namespace situate::search {

struct BrkgaSettings {
  Goal goal;
  sim::Decoder decoder;
  GenerationSizes sizes;
  int populations;                 // each evolves by itself
  std::vector<float> elite_bias;   // of every key: the probability of an elite's key
  std::vector<float> alpha, beta;  // of every key
  Linkage linkage;                 // of affinities
  uint64_t seed;
};

class Brkga {
 public:
  Brkga(const Problem& problem, const BrkgaSettings& settings);
  Brkga(const Brkga&) = delete;
  Brkga& operator=(const Brkga&) = delete;

  // The next chromosome of the first generation, of its first population, stands for a placement
  // (n) and an order (n). Only before anything has run.
  void begin_with(const int32_t* placement, const int32_t* order);

  // Evaluates up to `evaluations` chromosomes more; fewer if `ended`, which all threads call,
  // returns true. The result does not depend on the number of threads or calls.
  void run(int64_t evaluations, int threads, const std::function<bool()>& ended);

  struct Best {
    Fitness fitness;
    const float* keys;  // null before the first evaluation
  };
  Best best();

  int64_t evaluations() const { return evaluations_; }
  int64_t generation() const { return generation_; }
  const RandomKeys& keys() const { return keys_; }
  const Problem& problem() const { return problem_; }
  const std::vector<Population>& populations() const { return populations_; }

 private:
  struct Worker {
    explicit Worker(const Problem& problem)
        : simulator(problem), placement(problem.n), part(problem.n), peak(problem.d) {}
    sim::Simulator simulator;
    std::vector<int32_t> placement, part;
    std::vector<int64_t> peak;
  };

  int newcomers() const;
  void add(int newcomer, Worker& worker);
  void add_in_parts(Population& population, int i, std::vector<int32_t>& part,
                    SplitMix64& random) const;
  Fitness evaluate(const float* keys, Worker& worker) const;
  void select();

  const Problem& problem_;
  const Goal goal_;
  const sim::Decoder decoder_;
  const bool bytes_count_;
  const uint64_t seed_;
  const RandomKeys keys_;
  const KeyDistribution mutants_;
  const Linkage linkage_;
  std::vector<uint16_t> inherited_;
  std::vector<Population> populations_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::vector<float>> given_;
  int done_ = 0;  // newcomers of this generation that have their fitness, over all populations
  int64_t generation_ = 0, evaluations_ = 0;
};

}  // namespace situate::search
