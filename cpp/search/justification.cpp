#include "search/justification.h"

#include <algorithm>
#include <array>
#include <utility>

#include "search/fits_one_device.h"
#include "search/list_rules.h"
#include "search/overflow.h"

namespace situate::search {

namespace {
constexpr size_t most_members = 10;
constexpr int most_turns = 4;

// Changes of ranks at random: the share of ops whose rank changes, and the deviation as a share of
// the largest rank. The first members are upward ranks with a change of all.
constexpr std::array<double, 3> shares = {0.1, 0.3, 1}, deviations = {0.01, 0.03, 0.08};
constexpr double first_deviation = 0.15;

// While nothing fits, lists fill less and less of the memory, for they do not foresee all of it.
constexpr double less_room = 0.95, least_room = 0.5;

template <typename T, size_t Count>
T one_of(const std::array<T, Count>& options, SplitMix64& random) {
  return options[random.below(static_cast<int>(Count))];
}
}  // namespace

Justification::Justification(const Problem& problem, std::shared_ptr<const Problem> reversed,
                             uint64_t seed)
    : problem_(problem),
      reversed_(std::move(reversed)),
      upward_rank_(upward_rank(problem)),
      always_fits_(fits_one_device(problem)),
      simulator_(problem),
      random_(seed),
      priority_(problem.n),
      peak_(problem.d) {}

void Justification::run(int64_t evaluations, const std::function<bool()>& ended) {
  limit_ = evaluations_ + evaluations;
  ended_ = &ended;
  while (!spent()) justify(next_rank());
}

std::vector<double> Justification::next_rank() {
  if (members_.empty()) return upward_rank_;
  const bool first = members_.size() < most_members;
  auto rank =
      first ? upward_rank_ : members_[random_.below(static_cast<int>(members_.size()))].rank;
  const double share = first ? 1 : one_of(shares, random_);
  const double deviation = (first ? first_deviation : one_of(deviations, random_)) *
                           *std::max_element(rank.begin(), rank.end());
  for (double& of_op : rank)
    if (random_.unit() < share) of_op += deviation * noise();
  return rank;
}

// Of mean 0 and variance 1, nearly normal.
double Justification::noise() { return 2 * (random_.unit() + random_.unit() + random_.unit()) - 3; }

void Justification::justify(std::vector<double> rank) {
  double cost = list(rank);
  for (int turn = 0; turn < most_turns && !spent(); ++turn) {
    auto from_the_end = heft(*reversed_, 1, end_).end;
    const double next = list(from_the_end);
    if (next <= cost) rank = std::move(from_the_end);
    if (next >= cost) break;
    cost = next;
  }
  keep({cost, std::move(rank)});
}

double Justification::list(std::span<const double> rank) {
  auto listed = heft(problem_, room_, rank);
  end_ = std::move(listed.end);
  ++evaluations_;
  const double seconds = seconds_of(listed.placement, listed.order);
  double overflow = 0;
  for (int device = 0; device < problem_.d && !always_fits_; ++device) {
    const auto capacity = static_cast<double>(problem_.capacity[device]);
    overflow += std::max(0.0, (static_cast<double>(peak_[device]) - capacity) / capacity);
  }
  const double cost = seconds * overflow_penalty(overflow);
  const auto better = [](const Plan& a, const Plan& b) {
    return a.feasible != b.feasible ? a.feasible : a.cost < b.cost;
  };
  Plan plan{overflow == 0, cost, std::move(listed.placement), std::move(listed.order)};
  if (best_.order.empty() || better(plan, best_)) best_ = std::move(plan);
  if (!best_.feasible) room_ = std::max(least_room, less_room * room_);
  return cost;
}

double Justification::seconds_of(const std::vector<int32_t>& placement,
                                 const std::vector<int32_t>& order) {
  for (int place = 0; place < problem_.n; ++place)
    priority_[order[place]] = static_cast<float>(problem_.n - place);
  const sim::Decision decision{placement.data(), priority_.data()};
  if (always_fits_) return simulator_.run(decision, sim::Decoder::eager);
  return simulator_.run(decision, sim::Decoder::eager, peak_.data());
}

void Justification::keep(Member member) {
  const auto place = std::lower_bound(members_.begin(), members_.end(), member.cost,
                                      [](const Member& a, double cost) { return a.cost < cost; });
  members_.insert(place, std::move(member));
  if (members_.size() > most_members) members_.pop_back();
}

}  // namespace situate::search
