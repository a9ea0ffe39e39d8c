#include "sharding/restriction.h"

namespace situate::sharding {

namespace {

std::vector<int> numbers(const Instance& whole, std::span<const uint8_t> keep) {
  std::vector<int> strategy;
  for (int i = 0; i < whole.ops(); ++i)
    for (int x = 0; x < whole.strategies(i); ++x)
      if (keep[whole.first(i) + x]) strategy.push_back(x);
  return strategy;
}

class Gathering {
 public:
  Gathering(const Instance& whole, std::span<const uint8_t> keep) : whole_(whole), keep_(keep) {
    for (int i = 0; i < whole.ops(); ++i) {
      for (int x = 0; x < whole.strategies(i); ++x)
        if (kept(i, x)) cost_.push_back(whole.cost(i)[x]);
      first_.push_back(static_cast<int64_t>(cost_.size()));
      gather_parts(i);
    }
    gather_tables();
  }

  Instance instance() const {
    return Instance({first_, cost_, part_, begin_, end_, usage_, source_, target_, table_,
                     pair_cost_, whole_.limit()});
  }

 private:
  bool kept(int op, int x) const { return keep_[whole_.first(op) + x] != 0; }

  void gather_parts(int op) {
    for (const Part& part : whole_.parts(op)) {
      begin_.push_back(part.begin);
      end_.push_back(part.end);
      for (int x = 0; x < whole_.strategies(op); ++x)
        if (kept(op, x)) usage_.push_back(part.usage[x]);
    }
    part_.push_back(static_cast<int64_t>(begin_.size()));
  }

  void gather_tables() {
    std::vector<const Neighbour*> edges(whole_.edges());
    source_.resize(edges.size());
    target_.resize(edges.size());
    for (int i = 0; i < whole_.ops(); ++i)
      for (const Neighbour& n : whole_.neighbours(i)) {
        if (n.op < i) continue;
        edges[n.edge] = &n;
        source_[n.edge] = i;
        target_[n.edge] = n.op;
      }
    for (size_t k = 0; k < edges.size(); ++k) {
      const int a = static_cast<int>(source_[k]), b = static_cast<int>(target_[k]);
      const double* cost = edges[k]->rows;
      for (int x = 0; x < whole_.strategies(a); ++x)
        for (int y = 0; y < whole_.strategies(b); ++y, ++cost)
          if (kept(a, x) && kept(b, y)) pair_cost_.push_back(*cost);
      table_.push_back(static_cast<int64_t>(pair_cost_.size()));
    }
  }

  const Instance& whole_;
  std::span<const uint8_t> keep_;
  std::vector<int64_t> first_{0}, part_{0}, begin_, end_, usage_, source_, target_, table_{0};
  std::vector<double> cost_, pair_cost_;
};

}  // namespace

Restriction::Restriction(const Instance& whole, std::span<const uint8_t> keep)
    : instance(Gathering(whole, keep).instance()), strategy(numbers(whole, keep)) {}

std::vector<int> Restriction::expand(std::span<const int> chosen) const {
  std::vector<int> strategies(chosen.begin(), chosen.end());
  for (int i = 0; i < instance.ops(); ++i) strategies[i] = strategy[instance.first(i) + chosen[i]];
  return strategies;
}

}  // namespace situate::sharding
