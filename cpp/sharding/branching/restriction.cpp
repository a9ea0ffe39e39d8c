#include "sharding/branching/restriction.h"

namespace situate::sharding {

namespace {

std::vector<int> numbers(const Instance& whole, std::span<const uint8_t> keep) {
  std::vector<int> strategy;
  for (int i = 0; i < whole.ops(); ++i)
    for (int x = 0; x < whole.strategies(i); ++x)
      if (keep[whole.first(i) + x]) strategy.push_back(x);
  return strategy;
}

// The arrays of an instance with some strategies of another.
class Gathering {
 public:
  Gathering(const Instance& whole, std::span<const uint8_t> keep, std::span<const int> strategy)
      : whole_(whole), strategy_(strategy) {
    for (int i = 0; i < whole.ops(); ++i) {
      for (int x = 0; x < whole.strategies(i); ++x)
        if (keep[whole.first(i) + x]) cost_.push_back(whole.cost(i)[x]);
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
  std::span<const int> strategies(int64_t op) const {
    return strategy_.subspan(first_[op], first_[op + 1] - first_[op]);
  }

  void gather_parts(int op) {
    for (const Part& part : whole_.parts(op)) {
      begin_.push_back(part.begin);
      end_.push_back(part.end);
      for (const int x : strategies(op)) usage_.push_back(part.usage[x]);
    }
    part_.push_back(static_cast<int64_t>(begin_.size()));
  }

  void gather_tables() {
    std::vector<const double*> tables(whole_.edges());
    source_.resize(tables.size());
    target_.resize(tables.size());
    for (int i = 0; i < whole_.ops(); ++i)
      for (const Neighbour& n : whole_.neighbours(i)) {
        if (n.op < i) continue;
        tables[n.edge] = n.rows;
        source_[n.edge] = i;
        target_[n.edge] = n.op;
      }
    for (size_t k = 0; k < tables.size(); ++k) {
      const int64_t columns = whole_.strategies(static_cast<int>(target_[k]));
      for (const int x : strategies(source_[k]))
        for (const int y : strategies(target_[k])) pair_cost_.push_back(tables[k][x * columns + y]);
      table_.push_back(static_cast<int64_t>(pair_cost_.size()));
    }
  }

  const Instance& whole_;
  std::span<const int> strategy_;
  std::vector<int64_t> first_{0}, part_{0}, begin_, end_, usage_, source_, target_, table_{0};
  std::vector<double> cost_, pair_cost_;
};

}  // namespace

Restriction::Restriction(const Instance& whole, std::span<const uint8_t> keep)
    : strategy(numbers(whole, keep)), instance(Gathering(whole, keep, strategy).instance()) {}

std::vector<int> Restriction::expand(std::span<const int> chosen) const {
  std::vector<int> strategies(chosen.size());
  for (int i = 0; i < instance.ops(); ++i) strategies[i] = strategy[instance.first(i) + chosen[i]];
  return strategies;
}

}  // namespace situate::sharding
