#include "search/windows/window_search.h"

#include <memory>

#include "search/metropolis.h"
#include "search/moves/odds.h"
#include "search/moves/region.h"
#include "search/moves/reorder.h"
#include "search/moves/swap.h"

namespace situate::search {

namespace {

// What is in the way of a shorter window is looked for after so many moves.
constexpr int moves_between_looks = 32;

Neighbourhood moves_of(const sim::OrderedPlacement& plan, const Focus& focus) {
  Neighbourhood moves(plan.problem());
  moves.add(in_window.reorder, std::make_unique<ReorderMove>(plan, focus));
  moves.add(in_window.region,
            std::make_unique<NeighbourRegionMove>(plan.placement(), load_region, focus));
  moves.add(in_window.nearby_swap, std::make_unique<NearbySwapMove>(plan, focus));
  return moves;
}

}  // namespace

WindowSearch::WindowSearch(const Problem& problem, uint64_t seed, const int32_t* placement,
                           const int32_t* order, std::span<const int64_t> room)
    : state_(problem, placement, order, room),
      focus_(problem),
      moves_(moves_of(state_.plan(), focus_)),
      random_(seed) {}

void WindowSearch::run(double moves_an_op, const std::function<bool()>& ended) {
  while (!ended()) {
    search_window(moves_an_op);
    if (state_.timer().open_next()) continue;
    state_.timer().restart();
    return;
  }
}

// Windows overlap by half, so each takes half of the moves of its ops. A step may cost nothing but
// gain nothing: many ops are in no way's way.
void WindowSearch::search_window(double moves_an_op) {
  focus_.within(ops_of_window());
  state_.keep_to_devices_in_use();
  const auto moves =
      static_cast<int>(moves_an_op * static_cast<double>(ops_of_window().size()) / 2);
  for (int i = 0; i < moves; ++i) {
    if (i % moves_between_looks == 0) focus_.on(state_.timer().held_up());
    ++evaluations_;
    if (const Move* move = moves_.propose(random_)) metropolis_step(state_, *move, 0, random_);
  }
}

std::span<const int32_t> WindowSearch::ops_of_window() const {
  const auto& timer = state_.timer();
  return std::span(plan().order()).subspan(timer.first(), timer.last() - timer.first());
}

double WindowSearch::swept() const {
  return static_cast<double>(state_.timer().first()) / problem().n;
}

}  // namespace situate::search
