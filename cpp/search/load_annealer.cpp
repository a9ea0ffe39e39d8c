#include "search/load_annealer.h"

#include <memory>

#include "search/metropolis.h"
#include "search/moves/odds.h"
#include "search/moves/reassign.h"
#include "search/moves/region.h"
#include "search/moves/swap.h"

namespace situate::search {

namespace {

constexpr int64_t steps_between_calls = 256;  // of `ended`
constexpr int64_t steps_between_recounts = 1 << 16;

Neighbourhood moves_of(const sim::Placement& placement, const Focus& focus, Moves kind) {
  Neighbourhood moves(placement.problem());
  if (kind == Moves::single) {
    moves.add(1, std::make_unique<ReassignMove>(placement, focus));
    return moves;
  }
  moves.add(LoadShares::swap, std::make_unique<SwapMove>(placement));
  moves.add_fallback(LoadShares::region,
                     std::make_unique<NeighbourRegionMove>(placement, load_region, focus));
  return moves;
}

}  // namespace

LoadAnnealer::LoadAnnealer(const Problem& problem, Moves moves, uint64_t seed,
                           const int32_t* placement, const int32_t* line)
    : state_(problem, placement),
      random_(seed),
      anywhere_(problem),
      moves_(moves_of(state_.placement(), anywhere_, moves)),
      line_split_(state_, line) {}

void LoadAnnealer::weigh(const int64_t* bytes, const int64_t* capacity) {
  line_split_.forget_pieces();
  state_.weigh(bytes, capacity);
}

void LoadAnnealer::run(double temperature, int64_t evaluations,
                       const std::function<bool()>& ended) {
  if (problem().movable.empty()) return;
  for (int64_t i = 0; i < evaluations; ++i) {
    if (i % steps_between_calls == 0 && ended()) return;
    if (i % steps_between_recounts == steps_between_recounts - 1) state_.recount();
    ++evaluations_;
    if (const Move* move = moves_.propose(random_))
      metropolis_step(state_, *move, temperature, random_);
  }
}

}  // namespace situate::search
