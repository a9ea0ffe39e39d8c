#include "search/annealer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "search/metropolis.h"
#include "search/moves/odds.h"
#include "search/moves/reassign.h"
#include "search/moves/region.h"
#include "search/moves/reorder.h"
#include "search/moves/resend.h"
#include "search/moves/swap.h"

namespace situate::search {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// `ended` is called after so many steps, or steps on so many ops: in a large network one step takes
// as long as a hundred in a small one.
constexpr int64_t steps_between_calls = 64, ops_between_calls = 500'000;

// What is in the way of a better plan is looked for after so many steps. In a large network that
// takes as long as several.
constexpr int64_t steps_between_looks = 300;

const AnnealingShares& shares_of(const Problem& problem, Goal goal) {
  if (problem.n > few_ops || goal != Goal::time) return of_many_ops;
  return problem.blocking ? of_few_ops_blocking : of_few_ops;
}

Neighbourhood moves_of(const PlanState& state, const Focus& focus, Goal goal, Moves kind) {
  const auto& plan = state.plan();
  Neighbourhood moves(plan.problem());
  if (kind == Moves::single) {
    moves.add(1, std::make_unique<ReorderMove>(plan, focus));
    moves.add(1, std::make_unique<ReassignMove>(plan.placement(), focus));
    return moves;
  }
  const auto& shares = shares_of(plan.problem(), goal);
  moves.add(shares.reorder, std::make_unique<ReorderMove>(plan, focus));
  moves.add(shares.reassign, std::make_unique<ReassignMove>(plan.placement(), focus));
  moves.add(shares.region, std::make_unique<RegionMove>(plan.placement(), annealing_region, focus));
  moves.add(shares.nearby_swap, std::make_unique<NearbySwapMove>(plan, focus));
  moves.add(shares.reassign_and_reorder, std::make_unique<ReassignAndReorderMove>(plan, focus));
  if (state.sends_early()) {
    auto resend = std::make_unique<ResendMove>(plan, state.early());
    if (resend->supports(plan.problem())) moves.add(shares.resend, std::move(resend));
  }
  return moves;
}

}  // namespace

Annealer::Annealer(const Problem& problem, Goal goal, Moves moves, uint64_t seed,
                   const int32_t* placement, const int32_t* order,
                   std::span<const sim::PlacedTransfer> transfers)
    : state_(problem, goal, moves == Moves::single ? PeakMean::none : PeakMean::arithmetic,
             placement, order, transfers),
      random_(seed),
      focus_(problem),
      focuses_(moves == Moves::annealing),
      moves_(moves_of(state_, focus_, goal, moves)),
      block_move_(state_.plan().placement()) {}

void Annealer::restart(const int32_t* placement, const int32_t* order,
                       std::span<const sim::PlacedTransfer> transfers) {
  state_.restart(placement, order, transfers);
  next_look_ = evaluations_;
}

void Annealer::look() {
  focus_.on(state_.in_the_way());
  next_look_ = evaluations_ + steps_between_looks;
}

Move* Annealer::propose() {
  if (!block_move_.is_due(random_)) return moves_.propose(random_);
  return block_move_.propose(random_) ? &block_move_ : nullptr;
}

void Annealer::run(double temperature, int64_t evaluations, const std::function<bool()>& ended) {
  const int64_t steps =
      std::clamp<int64_t>(ops_between_calls / problem().n, 1, steps_between_calls);
  for (int64_t i = 0; i < evaluations; ++i) {
    if (i % steps == 0 && ended()) break;
    if (focuses_ && evaluations_ >= next_look_) look();
    ++evaluations_;
    if (const Move* move = propose()) metropolis_step(state_, *move, temperature, random_);
  }
  state_.finish();
}

double Annealer::typical_change(int64_t evaluations) {
  std::vector<double> changes;
  const double before = state_.cost();
  for (int64_t i = 0; i < evaluations; ++i) {
    ++evaluations_;
    const Move* move = propose();
    if (!move) continue;
    move->apply(state_);
    const double cost = move->evaluate(state_, infinity);
    move->undo(state_);
    if (cost != before && cost < infinity && before < infinity)
      changes.push_back(std::abs(cost - before));
  }
  if (changes.empty()) return 0;
  const auto middle = changes.begin() + changes.size() / 2;
  std::nth_element(changes.begin(), middle, changes.end());
  return *middle;
}

}  // namespace situate::search
