#include "search/random_keys/brkga.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "search/fits_one_device.h"
#include "threads/thread_pool.h"

namespace situate::search {

namespace {

// A stream of its own for every chromosome, whichever thread makes it.
SplitMix64 stream(uint64_t seed, int64_t generation, int newcomer) {
  SplitMix64 of_seed(seed);
  SplitMix64 of_generation(of_seed.next() ^ static_cast<uint64_t>(generation));
  SplitMix64 of_newcomer(of_generation.next() ^ static_cast<uint64_t>(newcomer));
  return SplitMix64(of_newcomer.next());
}

// See Population::breed.
std::vector<uint16_t> thresholds(const std::vector<float>& probability, size_t room) {
  std::vector<uint16_t> result(room + Population::block);
  std::transform(probability.begin(), probability.end(), result.begin(), [](float share) {
    return static_cast<uint16_t>(std::max(0.0f, std::round(share * 0x1p16f) - 1));
  });
  return result;
}

}  // namespace

Brkga::Brkga(const Problem& problem, const BrkgaSettings& settings)
    : problem_(problem),
      goal_(settings.goal),
      decoder_(settings.decoder),
      bytes_count_(settings.goal == Goal::memory || !fits_one_device(problem)),
      seed_(settings.seed),
      keys_(problem),
      mutants_(settings.alpha, settings.beta),
      linkage_(settings.linkage),
      inherited_(thresholds(settings.elite_bias, keys_.room())) {
  populations_.reserve(settings.populations);
  for (int i = 0; i < settings.populations; ++i)
    populations_.emplace_back(settings.sizes, keys_.count(), keys_.room());
}

void Brkga::begin_with(const int32_t* placement, const int32_t* order) {
  auto& keys = given_.emplace_back(keys_.count());
  auto random = stream(seed_, generation_, static_cast<int>(given_.size()) - 1);
  mutants_.draw(random, keys.data());
  keys_.encode(placement, order, keys.data());
}

int Brkga::newcomers() const {
  return static_cast<int>(populations_.size()) * populations_[0].newcomers();
}

void Brkga::run(int64_t evaluations, int threads, const std::function<bool()>& ended) {
  while (static_cast<int>(workers_.size()) < threads)
    workers_.push_back(std::make_unique<Worker>(problem_));
  threads::ThreadPool pool(threads);
  for (bool stopped = false; evaluations > 0 && !stopped;) {
    const int end = done_ + static_cast<int>(std::min<int64_t>(evaluations, newcomers() - done_));
    std::atomic<int> next = done_;
    std::atomic<bool> stop = false;
    pool.parallel_for(threads, [&](int thread) {
      while (!stop && !ended()) {
        const int newcomer = next++;
        if (newcomer >= end) return;
        add(newcomer, *workers_[thread]);
      }
      stop = true;
    });
    stopped = stop;
    const int reached = std::min<int>(next, end);
    evaluations -= reached - done_;
    evaluations_ += reached - done_;
    done_ = reached;
    if (done_ == newcomers()) select();
  }
}

void Brkga::add(int newcomer, Worker& worker) {
  const auto count = static_cast<int>(populations_.size());
  auto& population = populations_[newcomer % count];
  const int i = newcomer / count;
  float* keys = population.newcomer(i);
  auto random = stream(seed_, generation_, newcomer);
  if (newcomer % count == 0 && i < static_cast<int>(given_.size()) && !population.begun())
    std::copy(given_[i].begin(), given_[i].end(), keys);
  else if (!linkage_.empty())
    add_in_parts(population, i, worker.part, random);
  else if (population.begun())
    population.breed(i, inherited_, mutants_, random);
  else
    mutants_.draw(random, keys);
  population.fitness_of(i) = evaluate(keys, worker);
}

void Brkga::add_in_parts(Population& population, int i, std::vector<int32_t>& part,
                         SplitMix64& random) const {
  linkage_.draw(random, part);
  if (population.begun())
    return population.breed_parts(i, inherited_, mutants_, part, problem_.d, random);
  mutants_.draw(random, population.newcomer(i));
  join_parts(part, problem_.d, population.newcomer(i));
}

Fitness Brkga::evaluate(const float* keys, Worker& worker) const {
  const auto decision = keys_.decode(keys, worker.placement.data());
  if (!bytes_count_) return {0, worker.simulator.run(decision, decoder_)};
  const double makespan = worker.simulator.run(decision, decoder_, worker.peak.data());
  int64_t excess = 0;
  for (int device = 0; device < problem_.d; ++device)
    excess = problem::add_bytes(
        excess, std::max<int64_t>(0, worker.peak[device] - problem_.capacity[device]));
  if (goal_ == Goal::time) return {excess, makespan};
  return {excess, static_cast<double>(*std::max_element(worker.peak.begin(), worker.peak.end()))};
}

void Brkga::select() {
  for (auto& population : populations_) population.select();
  done_ = 0;
  ++generation_;
}

Brkga::Best Brkga::best() {
  Best best{{}, nullptr};
  const auto consider = [&](Fitness fitness, const float* keys) {
    if (!best.keys || fitness < best.fitness) best = {fitness, keys};
  };
  const auto count = static_cast<int>(populations_.size());
  for (const auto& population : populations_)
    if (population.begun()) consider(population.member_fitness(0), population.member(0));
  for (int newcomer = 0; newcomer < done_; ++newcomer) {
    auto& population = populations_[newcomer % count];
    consider(population.fitness_of(newcomer / count), population.newcomer(newcomer / count));
  }
  return best;
}

}  // namespace situate::search
