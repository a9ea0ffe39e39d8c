#include "sharding/messages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "nn/simd.h"

namespace situate::sharding {

namespace {

// Shares of the gap that a step of prices hopes to close. After the shortest, long ones come again:
// messages have changed since.
constexpr double kLongest = 0.2, kShortest = 1e-3;
// The first share from a dual that is already near the best.
constexpr double kNear = 0.01;
// Passes without progress before steps are shortened, at first and near the best dual.
constexpr int kPatience = 10, kLittle = 3;
// Progress of the bound, as a share of it, below which passes take another order.
constexpr double kProgress = 1e-4;

// Of each column, the least sum of an op's number and the table's.
SITUATE_EVERY_WIDTH
void least_sums(const double* number, const double* table, int rows, int columns, double* least) {
  std::fill_n(least, columns, std::numeric_limits<double>::infinity());
  for (int x = 0; x < rows; ++x, table += columns)
    for (int y = 0; y < columns; ++y) {
      const double sum = number[x] + table[y];
      least[y] = sum < least[y] ? sum : least[y];
    }
}

}  // namespace

Messages::Messages(const Instance& instance, uint64_t seed)
    : instance_(instance),
      price_(instance.times()),
      best_price_(instance.times()),
      sum_(instance.times() + 1),
      slope_(instance.times()),
      share_(instance.ops()),
      theta_(instance.most_strategies()),
      part_(instance.most_strategies()),
      reduced_cost_(instance.first(instance.ops())),
      keep_(instance.first(instance.ops()), 1),
      chosen_(instance.ops()),
      random_(seed),
      order_(instance.ops()),
      place_(instance.ops()),
      bound_(-std::numeric_limits<double>::infinity()),
      best_(bound_),
      best_before_(bound_),
      scale_(kLongest),
      patience_(kPatience) {
  start_messages();
  std::iota(order_.begin(), order_.end(), 0);
  order_ops();
}

Messages::Messages(const Instance& instance, Dual dual) : Messages(instance, 0) {
  message_ = best_message_ = std::move(dual.message);
  price_ = best_price_ = std::move(dual.price);
  scale_ = kNear;
  patience_ = kLittle;
}

Messages::Messages(const Instance& instance, const Messages& whole, std::span<const uint8_t> keep)
    : Messages(instance, 0) {
  message_ = whole.gather(whole.message_, keep);
  best_message_ = whole.gather(whole.best_message_, keep);
  price_ = whole.price_;
  best_price_ = whole.best_price_;
  slope_ = whole.slope_;
  random_ = whole.random_;
  order_ = whole.order_;
  order_ops();
  bound_ = whole.bound_;
  best_ = whole.best_;
  best_before_ = whole.best_before_;
  scale_ = whole.scale_;
  stalls_ = whole.stalls_;
  patience_ = whole.patience_;
  standstills_ = whole.standstills_;
}

Dual Messages::dual(std::span<const uint8_t> keep) const {
  return {gather(best_message_, keep), best_price_};
}

// Of messages, the numbers for the strategies in `keep`.
std::vector<double> Messages::gather(std::span<const double> messages,
                                     std::span<const uint8_t> keep) const {
  std::vector<double> numbers;
  for (int i = 0; i < instance_.ops(); ++i)
    for (size_t k = 0; k < instance_.neighbours(i).size(); ++k) {
      const double* message = &messages[start_[instance_.row(i) + k]];
      for (int x = 0; x < instance_.strategies(i); ++x)
        if (keep[instance_.first(i) + x]) numbers.push_back(message[x]);
    }
  return numbers;
}

void Messages::start_messages() {
  start_.reserve(2 * instance_.edges());
  int64_t total = 0;
  for (int i = 0; i < instance_.ops(); ++i) {
    for (size_t k = 0; k < instance_.neighbours(i).size(); ++k) {
      start_.push_back(total);
      total += instance_.strategies(i);
    }
  }
  message_.assign(total, 0);
  best_message_ = message_;
}

// Messages may be stuck at a bound that they leave in another order. The first order, which is that
// of the graph, carries them furthest.
void Messages::change_order() {
  if (std::is_sorted(order_.begin(), order_.end())) {
    for (int k = instance_.ops() - 1; k > 0; --k)
      std::swap(order_[k], order_[random_.below(k + 1)]);
  } else {
    std::iota(order_.begin(), order_.end(), 0);
  }
  order_ops();
}

// An op's number of neighbours on the fuller side is the number of chains through it.
void Messages::order_ops() {
  for (int k = 0; k < instance_.ops(); ++k) place_[order_[k]] = k;
  for (int i = 0; i < instance_.ops(); ++i) {
    int before = 0, after = 0;
    for (const Neighbour& n : instance_.neighbours(i))
      ++(place_[n.op] < place_[i] ? before : after);
    share_[i] = 1.0 / std::max({before, after, 1});
  }
}

// theta_: costs of an op's strategies, with the price of their memory and all messages.
void Messages::reduced(int op) {
  const int count = instance_.strategies(op);
  std::copy_n(instance_.cost(op), count, theta_.begin());
  for (const Part& part : instance_.parts(op)) {
    const double price = sum_[part.end] - sum_[part.begin];
    if (price == 0) continue;
    for (int x = 0; x < count; ++x) theta_[x] += price * static_cast<double>(part.usage[x]);
  }
  const int64_t row = instance_.row(op);
  const int degree = static_cast<int>(instance_.neighbours(op).size());
  for (int k = 0; k < degree; ++k) {
    const double* message = &message_[start_[row + k]];
    for (int x = 0; x < count; ++x) theta_[x] += message[x];
  }
}

// Sends the op's part of theta_ along an edge: sent(y) = min_x share theta(x) - received(x) +
// table(x, y). The least number of the message is taken from it.
double Messages::send(int op, const Neighbour& n, int64_t number, double share) {
  const int count = instance_.strategies(op), far = instance_.strategies(n.op);
  const double* received = &message_[start_[number]];
  double* sent = &message_[start_[n.reverse]];
  for (int x = 0; x < count; ++x) part_[x] = share * theta_[x] - received[x];
  least_sums(part_.data(), n.rows, count, far, sent);
  const double least = *std::min_element(sent, sent + far);
  for (int y = 0; y < far; ++y) sent[y] -= least;
  return least;
}

// Chooses given the strategies of ops before it, and messages of those behind it.
void Messages::choose(int op) {
  const int count = instance_.strategies(op);
  const int64_t row = instance_.row(op);
  std::copy_n(theta_.begin(), count, part_.begin());
  int64_t k = row;
  for (const Neighbour& n : instance_.neighbours(op)) {
    if (place_[n.op] < place_[op]) {
      const double* message = &message_[start_[k]];
      const double* column = instance_.neighbours(n.op)[n.reverse - instance_.row(n.op)].rows +
                             static_cast<int64_t>(chosen_[n.op]) * count;
      for (int x = 0; x < count; ++x) part_[x] += column[x] - message[x];
    }
    ++k;
  }
  chosen_[op] =
      static_cast<int>(std::min_element(part_.begin(), part_.begin() + count) - part_.begin());
}

void Messages::pass(double cutoff) {
  std::partial_sum(price_.begin(), price_.end(), sum_.begin() + 1);
  // The Lagrangian's constant: the price of all memory up to the limit.
  const double start = -sum_.back() * static_cast<double>(instance_.limit());
  bound_ = start + backward(start + forward(), cutoff);
  if (bound_ > best_) {
    best_ = bound_;
    best_price_ = price_;
    best_message_ = message_;
    stalls_ = 0;
  } else if (++stalls_ > patience_) {
    shorten_steps();
  }
}

// The sum of what is taken from messages and ops on the way.
double Messages::forward() {
  double sum = 0;
  for (const int i : order_) {
    reduced(i);
    choose(i);
    sum += take_least(i);
    int64_t k = instance_.row(i);
    for (const Neighbour& next : instance_.neighbours(i)) {
      if (place_[next.op] > place_[i]) sum += send(i, next, k, share_[i]);
      ++k;
    }
  }
  return sum;
}

double Messages::backward(double floor, double cutoff) {
  double sum = 0;
  for (auto op = order_.rbegin(); op != order_.rend(); ++op) {
    const int i = *op;
    reduced(i);
    sum += take_least(i);
    std::copy_n(theta_.begin(), instance_.strategies(i), &reduced_cost_[instance_.first(i)]);
    exclude(i, cutoff - floor);
    int64_t k = instance_.row(i);
    for (const Neighbour& next : instance_.neighbours(i)) {
      if (place_[next.op] < place_[i]) sum += send(i, next, k, share_[i]);
      ++k;
    }
  }
  return sum;
}

double Messages::take_least(int op) {
  const int count = instance_.strategies(op);
  const double least = *std::min_element(theta_.begin(), theta_.begin() + count);
  for (int x = 0; x < count; ++x) theta_[x] -= least;
  return least;
}

void Messages::exclude(int op, double most) {
  const int64_t first = instance_.first(op);
  for (int x = 0; x < instance_.strategies(op); ++x) {
    if (theta_[x] <= most || !keep_[first + x]) continue;
    keep_[first + x] = 0;
    ++excluded_;
  }
}

// Too long a step: shorter ones from the best prices.
void Messages::shorten_steps() {
  stalls_ = 0;
  price_ = best_price_;
  std::fill(slope_.begin(), slope_.end(), 0.0);
  scale_ *= 0.6;
  if (scale_ >= kShortest) return;
  scale_ = kLongest;
  if (best_ - best_before_ <= kProgress * std::abs(best_)) {
    ++standstills_;
    change_order();
  }
  best_before_ = best_;
}

void Messages::step(double upper) {
  std::vector<double> load(instance_.times() + 1);
  for (int i = 0; i < instance_.ops(); ++i) {
    for (const Part& part : instance_.parts(i)) {
      const auto bytes = static_cast<double>(part.usage[chosen_[i]]);
      load[part.begin] += bytes;
      load[part.end] -= bytes;
    }
  }
  // A limit of zero has no shares.
  const double limit = std::max(1.0, static_cast<double>(instance_.limit()));
  double sum = 0, most = -limit, norm = 0;
  for (int t = 0; t < instance_.times(); ++t) {
    sum += load[t];
    // An average over passes (the volume algorithm): single choices jump.
    slope_[t] += 0.2 * ((sum - limit) / limit - slope_[t]);
    most = std::max(most, slope_[t]);
  }
  // Of the times of too much memory only the worst and those with a price count: others follow.
  auto counts = [&](int t) { return price_[t] > 0 || (slope_[t] > 0 && slope_[t] == most); };
  for (int t = 0; t < instance_.times(); ++t)
    if (counts(t)) norm += slope_[t] * slope_[t];
  if (norm < 1e-12) return;
  // Polyak's length: the gap over the square of the subgradient.
  const double length = scale_ * std::max(upper - bound_, 1e-6 * std::abs(bound_)) / norm;
  for (int t = 0; t < instance_.times(); ++t)
    if (counts(t)) price_[t] = std::max(0.0, price_[t] + length * slope_[t] / limit);
}

}  // namespace situate::sharding
