#include "sharding/forest_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace situate::sharding {

namespace {

// Below all differences of costs, which are whole numbers: strategies of equal cost take turns.
constexpr double kTie = 1e-3;
// Ops of the smallest move.
constexpr double kSmallest = 8;
// Times that a move may raise the price of memory where it needs too much.
constexpr int kTrials = 5;

}  // namespace

ForestSearch::ForestSearch(const Instance& instance, std::span<const int> start, uint64_t seed)
    : instance_(instance),
      random_(seed),
      loads_(instance.times()),
      price_sum_(instance.times() + 1),
      in_region_(instance.ops()),
      in_forest_(instance.ops()),
      in_tree_(instance.ops()),
      stamp_(instance.ops()),
      tree_(instance.ops()),
      next_(instance.ops()) {
  for (int i = 0; i < instance.ops(); ++i)
    if (instance.strategies(i) > 1) free_.push_back(i);
  restart(start);
}

void ForestSearch::restart(std::span<const int> start) {
  chosen_.assign(start.begin(), start.end());
  loads_ = Loads(instance_.times());
  for (int i = 0; i < instance_.ops(); ++i)
    for (const Part& part : instance_.parts(i))
      loads_.add(part.begin, part.end, part.usage[chosen_[i]]);
  value_ = instance_.value(chosen_);
}

void ForestSearch::set_prices(std::span<const double> price) {
  for (size_t t = 0; t < price.size(); ++t) price_sum_[t + 1] = price_sum_[t] + price[t];
}

// Ops near a few that are in memory at the same time, in random order; of a hub's neighbours only
// some. Ops far apart in the graph so exchange memory.
void ForestSearch::gather(int size) {
  region_.clear();
  ++mark_;
  size = std::min(size, choices());
  if (size == 0) return;
  auto add = [&](int op) {
    if (in_region_[op] == mark_ || instance_.strategies(op) == 1) return;
    if (static_cast<int>(region_.size()) >= size) return;
    in_region_[op] = mark_;
    region_.push_back(op);
  };
  const int time = moment(free_[random_.below(choices())]);
  // Neighbourhoods of the whole size, or of a half, a quarter or an eighth of it.
  const int ball = std::max(4, size >> random_.below(4));
  for (size_t done = 0, seeds = 0; static_cast<int>(region_.size()) < size;) {
    if (done == region_.size() || region_.size() >= (seeds + 1) * ball) {
      done = region_.size();
      seeds = region_.size() / ball;
      const int op = alive(time);
      add(in_region_[op] == mark_ ? free_[random_.below(choices())] : op);
      continue;
    }
    const auto around = instance_.neighbours(region_[done++]);
    const int degree = static_cast<int>(around.size());
    const int most = std::max(8, size / 4);
    if (degree <= most) {
      for (const Neighbour& n : around) add(n.op);
    } else {
      for (int k = 0; k < most; ++k) add(around[random_.below(degree)].op);
    }
  }
  for (int i = static_cast<int>(region_.size()) - 1; i > 0; --i)
    std::swap(region_[i], region_[random_.below(i + 1)]);
}

// A time at which an op is in memory; -1 if it never is.
int ForestSearch::moment(int op) {
  const auto parts = instance_.parts(op);
  if (parts.empty()) return -1;
  const Part& part = parts[random_.below(parts.size())];
  return part.begin + random_.below(std::max(1, part.end - part.begin));
}

// A random op that is in memory at a time, or any if none is soon drawn.
int ForestSearch::alive(int time) {
  int op = free_[random_.below(choices())];
  for (int trial = 0; trial < 16; ++trial) {
    for (const Part& part : instance_.parts(op))
      if (part.begin <= time && time < part.end) return op;
    op = free_[random_.below(choices())];
  }
  return op;
}

// The tree of an op: union-find, which halves the paths it takes.
int ForestSearch::find(int op) {
  while (tree_[op] != op) op = tree_[op] = tree_[tree_[op]];
  return op;
}

// Of the region, the ops that close no cycle.
void ForestSearch::select() {
  for (const int op : region_) {
    if (std::any_of(held_.begin(), held_.end(), [&](const Held& h) { return h.op == op; }))
      continue;
    ++stamps_;
    bool closes = false;
    for (const Neighbour& n : instance_.neighbours(op)) {
      if (in_forest_[n.op] != mark_) continue;
      // Two neighbours in one tree would close a cycle.
      int64_t& stamp = stamp_[find(n.op)];
      if (stamp == stamps_) {
        closes = true;
        break;
      }
      stamp = stamps_;
    }
    if (closes) continue;
    in_forest_[op] = mark_;
    tree_[op] = op;
    for (const Neighbour& n : instance_.neighbours(op))
      if (in_forest_[n.op] == mark_ && n.op != op) tree_[find(n.op)] = find(op);
  }
}

// Orders the forest so that every op stands behind its parent.
void ForestSearch::root() {
  forest_.clear();
  int64_t values = 0, choices = 0;
  for (const int op : region_) {
    if (in_forest_[op] != mark_ || in_tree_[op] == mark_) continue;
    size_t done = forest_.size();
    in_tree_[op] = mark_;
    forest_.push_back({op, -1, nullptr, 0, 0});
    for (; done < forest_.size(); ++done) {
      const int parent = forest_[done].op;
      for (const Neighbour& n : instance_.neighbours(parent)) {
        if (in_forest_[n.op] != mark_ || in_tree_[n.op] == mark_) continue;
        in_tree_[n.op] = mark_;
        forest_.push_back({n.op, static_cast<int>(done), n.rows, 0, 0});
      }
    }
  }
  for (Branch& branch : forest_) {
    branch.start = values;
    values += instance_.strategies(branch.op);
    branch.choice = choices;
    if (branch.parent >= 0) choices += instance_.strategies(forest_[branch.parent].op);
  }
  value_of_.resize(values);
  choice_.resize(choices);
}

// The cost of every strategy in the forest, with its edges to ops outside.
void ForestSearch::weigh(double share) {
  for (const Branch& branch : forest_) {
    const int op = branch.op, count = instance_.strategies(op);
    double* value = &value_of_[branch.start];
    const double* cost = instance_.cost(op);
    for (int x = 0; x < count; ++x) value[x] = cost[x] + kTie * random_.unit();
    for (const Part& part : instance_.parts(op)) {
      double price = share * (price_sum_[part.end] - price_sum_[part.begin]);
      for (const Surcharge& more : surcharges_)
        if (part.begin <= more.time && more.time < part.end) price += more.price;
      if (price == 0) continue;
      for (int x = 0; x < count; ++x) value[x] += price * static_cast<double>(part.usage[x]);
    }
    for (const Neighbour& n : instance_.neighbours(op)) {
      if (in_forest_[n.op] == mark_) continue;
      const Neighbour& other = instance_.neighbours(n.op)[n.reverse - instance_.row(n.op)];
      // At the other op's strategy, its table has a number for each strategy of this one.
      const double* row = other.rows + static_cast<int64_t>(chosen_[n.op]) * count;
      for (int x = 0; x < count; ++x) value[x] += row[x];
    }
  }
}

// From leaves to roots, the least cost of each subtree by its parent's strategy; then from roots to
// leaves, the strategies that have it.
void ForestSearch::solve() {
  for (int i = static_cast<int>(forest_.size()) - 1; i >= 0; --i) {
    const Branch& branch = forest_[i];
    if (branch.parent < 0) continue;
    const Branch& parent = forest_[branch.parent];
    const int count = instance_.strategies(branch.op), rows = instance_.strategies(parent.op);
    const double* value = &value_of_[branch.start];
    double* above = &value_of_[parent.start];
    for (int x = 0; x < rows; ++x) {
      const double* row = branch.rows + static_cast<int64_t>(x) * count;
      double least = std::numeric_limits<double>::infinity();
      int best = 0;
      for (int y = 0; y < count; ++y) {
        const double total = value[y] + row[y];
        if (total < least) {
          least = total;
          best = y;
        }
      }
      above[x] += least;
      choice_[branch.choice + x] = best;
    }
  }
  for (const Branch& branch : forest_) {
    if (branch.parent < 0) {
      const double* value = &value_of_[branch.start];
      next_[branch.op] = static_cast<int>(
          std::min_element(value, value + instance_.strategies(branch.op)) - value);
    } else {
      next_[branch.op] = choice_[branch.choice + next_[forest_[branch.parent].op]];
    }
  }
}

// The difference of the problem's value if the forest takes its new strategies.
double ForestSearch::change() const {
  double difference = 0;
  for (const Branch& branch : forest_) {
    const int op = branch.op, was = chosen_[op], is = next_[op];
    if (was == is) continue;
    difference += instance_.cost(op)[is] - instance_.cost(op)[was];
    for (const Neighbour& n : instance_.neighbours(op)) {
      const bool moves = in_forest_[n.op] == mark_ && next_[n.op] != chosen_[n.op];
      // An edge between two ops that move counts at the first of them.
      if (moves && n.op < op) continue;
      const int far = instance_.strategies(n.op);
      const int there = moves ? next_[n.op] : chosen_[n.op];
      difference += n.rows[static_cast<int64_t>(is) * far + there] -
                    n.rows[static_cast<int64_t>(was) * far + chosen_[n.op]];
    }
  }
  return difference;
}

void ForestSearch::apply(bool back) {
  for (const Branch& branch : forest_) {
    const int op = branch.op;
    if (chosen_[op] == next_[op]) continue;
    for (const Part& part : instance_.parts(op)) {
      const int64_t bytes = part.usage[next_[op]] - part.usage[chosen_[op]];
      loads_.add(part.begin, part.end, back ? -bytes : bytes);
    }
  }
}

// Gives a few ops of the region another strategy and holds them out of the forest, which then
// answers: so changes around a cycle of the graph come about.
void ForestSearch::hold() {
  held_.clear();
  // Half of the moves hold no op.
  const int count = random_.below(4) - 1;
  for (int k = 0; k < count && k < static_cast<int>(region_.size()); ++k) {
    const int op = region_[k], strategies = instance_.strategies(op);
    if (strategies == 1) continue;
    const int other = (chosen_[op] + 1 + random_.below(strategies - 1)) % strategies;
    held_.push_back({op, chosen_[op]});
    set(op, other);
  }
}

void ForestSearch::set(int op, int strategy) {
  const int was = chosen_[op];
  value_ += instance_.cost(op)[strategy] - instance_.cost(op)[was];
  for (const Neighbour& n : instance_.neighbours(op)) {
    const int far = instance_.strategies(n.op);
    value_ += n.rows[static_cast<int64_t>(strategy) * far + chosen_[n.op]] -
              n.rows[static_cast<int64_t>(was) * far + chosen_[n.op]];
  }
  for (const Part& part : instance_.parts(op))
    loads_.add(part.begin, part.end, part.usage[strategy] - part.usage[was]);
  chosen_[op] = strategy;
}

// Keeps the forest's new strategies if they are no worse than those before the move.
ForestSearch::Outcome ForestSearch::attempt(double share, double value, int64_t above) {
  weigh(share);
  solve();
  const double after = value_ + change();
  if (above == 0 && after > value + kTie) return Outcome::kDear;
  apply(false);
  if (excess() > above || (excess() == above && after > value + kTie)) {
    const bool large = excess() > above;
    peak_ = loads_.peak();
    apply(true);
    return large ? Outcome::kLarge : Outcome::kDear;
  }
  for (const Branch& branch : forest_) chosen_[branch.op] = next_[branch.op];
  value_ = after;
  return Outcome::kKept;
}

// The mean price of a byte of the forest's parts that are in memory at a time.
double ForestSearch::price_at(int time) const {
  double sum = 0;
  int count = 0;
  for (const Branch& branch : forest_) {
    for (const Part& part : instance_.parts(branch.op)) {
      if (part.begin > time || time >= part.end) continue;
      sum += price_sum_[part.end] - price_sum_[part.begin];
      ++count;
    }
  }
  const double least = 1e-4 * std::abs(value_) / std::max(1.0, 1.0 * instance_.limit());
  return std::max(count ? sum / count : 0.0, least);
}

void ForestSearch::move(int size) {
  // Where memory is left over, its price only hinders.
  static constexpr double kShares[] = {1, 1, 0, 0.5, 2};
  const double value = value_;
  const int64_t above = excess();
  gather(size);
  hold();
  select();
  root();
  surcharges_.clear();
  const double share = kShares[random_.below(5)];
  double surcharge = 0.25;
  for (int trial = 0; trial < kTrials; ++trial, surcharge *= 2) {
    const Outcome outcome = attempt(share, value, above);
    if (outcome == Outcome::kKept) return;
    if (outcome == Outcome::kDear) break;
    surcharges_.push_back({peak_, surcharge * price_at(peak_)});
  }
  if (above > 0 && attempt(8, value, above) == Outcome::kKept) return;
  for (const auto& [op, strategy] : held_) set(op, strategy);
  value_ = value;
}

void ForestSearch::run(int64_t ops, const Stopped& stopped) {
  // Most moves are small: a large one takes as long as thousands of them.
  const double most = std::log(std::max(1.0, free_.size() / kSmallest));
  while (ops > 0 && !stopped()) {
    const double part = random_.unit();
    const int size = static_cast<int>(kSmallest * std::exp(most * part * part));
    move(size);
    ops -= size;
  }
}

}  // namespace situate::sharding
