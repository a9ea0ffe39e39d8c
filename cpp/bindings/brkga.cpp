// Binds the biased random-key genetic algorithm.
#include "search/random_keys/brkga.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/checks.h"
#include "bindings/interruption.h"
#include "bindings/names.h"
#include "random/beta_quantiles.h"
#include "search/random_keys/expectation.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace situate::bindings {
namespace {

using search::Brkga;
using search::GenerationSizes;
using search::Population;
using Keys = Array<float, 1>;
using Ends = Array<int32_t, 1>;

void check_sizes(const GenerationSizes& sizes, int populations) {
  check(sizes.members > 0 && populations > 0, "there must be a chromosome and a population");
  check(sizes.elites > 0 && sizes.elites < sizes.members, "elites are one at least, but not all");
  check(sizes.mutants >= 0 && sizes.elites + sizes.mutants <= sizes.members,
        "elites and mutants are no more than the population");
}

void check_keys(const Problem& p, const Keys& elite_bias, const Keys& alpha, const Keys& beta) {
  const size_t count = search::RandomKeys(p).count();
  check(elite_bias.size() == count && alpha.size() == count && beta.size() == count,
        "there is a bias, an alpha and a beta for every key");
  const auto all = [](const Keys& keys, auto condition) {
    return std::all_of(keys.data(), keys.data() + keys.size(), condition);
  };
  check(all(elite_bias, [](float x) { return 0.5f <= x && x <= 1; }), "a bias is from 0.5 to 1");
  const auto positive = [](float x) { return x > 0 && x <= random::BetaQuantiles::most; };
  check(all(alpha, positive) && all(beta, positive),
        "alpha and beta are positive and at most 1e12");
}

void check_linkage(const Problem& p, const Ends& source, const Ends& target, const Keys& together) {
  check(source.size() == target.size() && source.size() == together.size(),
        "there is a source, a target and a probability for every edge");
  const auto all = [](const auto& of, auto condition) {
    return std::all_of(of.data(), of.data() + of.size(), condition);
  };
  const auto is_op = [&](int32_t op) { return 0 <= op && op < p.n; };
  check(all(source, is_op) && all(target, is_op), "edges are between ops");
  check(all(together, [](float x) { return 0 <= x && x <= 1; }), "a probability is from 0 to 1");
}

template <typename T>
std::span<const T> span_of(const Array<T, 1>& array) {
  return {array.data(), array.size()};
}

void make(Brkga* self, const Problem& p, const std::string& goal, const std::string& decoder,
          uint64_t seed, int members, int elites, int mutants, int populations,
          const Keys& elite_bias, const Keys& alpha, const Keys& beta, const Ends& source,
          const Ends& target, const Keys& together) {
  check(goal == "time" || goal == "memory", "the goal is time or memory");
  const GenerationSizes sizes{members, elites, mutants};
  check_sizes(sizes, populations);
  check_keys(p, elite_bias, alpha, beta);
  check_linkage(p, source, target, together);
  new (self)
      Brkga(p, search::BrkgaSettings{
                   goal_named(goal), decoder_named(decoder), sizes, populations,
                   copy_of(elite_bias), copy_of(alpha), copy_of(beta),
                   search::Linkage(span_of(source), span_of(target), span_of(together)), seed});
}

void begin_with(Brkga& brkga, const Array<int32_t, 1>& placement, const Array<int32_t, 1>& order) {
  check(brkga.evaluations() == 0, "the first generation is complete or under way");
  check_decision(brkga.problem(), view(placement), view(order));
  brkga.begin_with(placement.data(), order.data());
}

void run(Brkga& brkga, int64_t evaluations, double seconds, int threads) {
  check(threads > 0, "there must be a thread");
  Interruption interruption;
  const auto begin = Clock::now();
  {
    nb::gil_scoped_release released;
    brkga.run(evaluations, threads, [&] {
      const auto now = Clock::now();
      return std::chrono::duration<double>(now - begin).count() > seconds ||
             interruption.heard(now);
    });
  }
  interruption.raise();
}

auto best_of(Brkga& brkga) {
  const auto best = brkga.best();
  check(best.keys, "nothing was evaluated yet");
  const Problem& p = brkga.problem();
  const auto n = static_cast<size_t>(p.n), m = static_cast<size_t>(p.m),
             d = static_cast<size_t>(p.d);
  std::vector<int32_t> placement(n);
  const auto decision = brkga.keys().decode(best.keys, placement.data());
  std::vector<float> priority(decision.priority, decision.priority + n);
  std::vector<float> sent(decision.transfer_priority, decision.transfer_priority + m * d);
  return std::make_tuple(best.fitness.excess, best.fitness.value,
                         to_numpy(std::move(placement), {n}), to_numpy(std::move(priority), {n}),
                         to_numpy(std::move(sent), {m, d}));
}

auto population_of(const Brkga& brkga) {
  std::vector<float> keys;
  std::vector<int64_t> excess;
  std::vector<double> value;
  const size_t count = brkga.keys().count();
  for (const Population& population : brkga.populations())
    for (int i = 0; population.begun() && i < population.size(); ++i) {
      keys.insert(keys.end(), population.member(i), population.member(i) + count);
      excess.push_back(population.member_fitness(i).excess);
      value.push_back(population.member_fitness(i).value);
    }
  const size_t members = value.size();
  return std::make_tuple(to_numpy(std::move(keys), {members, count}),
                         to_numpy(std::move(excess), {members}),
                         to_numpy(std::move(value), {members}));
}

auto expectation_of(const Brkga& brkga) {
  auto found = search::expectation(brkga);
  const auto n = static_cast<size_t>(brkga.problem().n), d = static_cast<size_t>(brkga.problem().d);
  return std::make_tuple(to_numpy(std::move(found.share), {n, d}),
                         to_numpy(std::move(found.place), {n}));
}

}  // namespace

void bind_brkga(nb::module_& module) {
  module.def(
      "key_count", [](const Problem& p) { return search::RandomKeys(p).count(); }, "problem"_a,
      "Keys of a chromosome: n x d affinities, n priorities, and t x d of tensors that are sent.");
  nb::class_<Brkga>(module, "Brkga",
                    R"(Populations of so many chromosomes each, which are yet to be drawn.

goal: time or memory.
decoder: eager or serial.
elite_bias: (keys,) the probability that a child has its elite's key.
alpha, beta: (keys,) of the beta distributions that mutants are drawn from.
source, target: (e,) ops at the ends of edges; together: (e,) the probability that a chromosome
draws or inherits the affinities of both ends together. Without edges each op is by itself.)")
      .def("__init__", &make, nb::keep_alive<1, 2>(), nb::kw_only(), "problem"_a, "goal"_a,
           "decoder"_a, "seed"_a, "members"_a, "elites"_a, "mutants"_a, "populations"_a,
           "elite_bias"_a, "alpha"_a, "beta"_a, "source"_a, "target"_a, "together"_a)
      .def("begin_with", &begin_with, "placement"_a, "order"_a,
           "Puts a decision (n,), (n,) into the first generation, before anything has run.")
      .def("run", &run, "evaluations"_a, "seconds"_a, "threads"_a,
           "Evaluates so many chromosomes more, fewer after so many seconds.")
      .def("best", &best_of,
           "Of the best chromosome: bytes beyond the capacities, value, placement (n,), priorities "
           "(n,) and transfer priorities (m, d).")
      .def("population", &population_of,
           "Keys (k, keys), bytes beyond the capacities (k,) and values (k,) of the last complete "
           "generation, of each population the best first.")
      .def("expectation", &expectation_of,
           "Of the last complete generation: shares (n, d) of the chromosomes that put an op on a "
           "device, and mean places (n,) in the order, from 0 to 1.")
      .def_prop_ro("evaluations", &Brkga::evaluations)
      .def_prop_ro("generation", &Brkga::generation);
}

}  // namespace situate::bindings
