// The moves of a search and the share of the steps that each takes.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "search/moves/move.h"

namespace situate::search {

// The moves of annealing, or those of plain local search: one unit to another device, or one op to
// another place in the order.
enum class Moves { annealing, single };

class Neighbourhood {
 public:
  explicit Neighbourhood(const Problem& problem) : problem_(problem) {}

  // Adds a move that is drawn `share` times in the sum of all shares. The first move of a
  // neighbourhood must support the problem; it takes the shares of moves that do not.
  void add(int share, std::unique_ptr<Move> move) {
    total_ += share;
    const bool first = entries_.empty();
    moves_.push_back(std::move(move));
    const bool supported = first || moves_.back()->supports(problem_);
    entries_.push_back({total_, supported ? moves_.back().get() : entries_.front().move});
  }
  // Adds such a move, which is proposed also where another move's draw would change nothing.
  void add_fallback(int share, std::unique_ptr<Move> move) {
    add(share, std::move(move));
    fallback_ = entries_.back().move;
  }

  // Draws a move and lets it draw a change. Null if that would change nothing.
  Move* propose(SplitMix64& random) {
    const int drawn = random.below(total_);
    size_t i = 0;
    while (drawn >= entries_[i].end) ++i;
    Move* move = entries_[i].move;
    if (move->propose(random)) return move;
    return fallback_ && fallback_->propose(random) ? fallback_ : nullptr;
  }

 private:
  struct Entry {
    int end;  // the move is drawn by numbers from the last entry's end to below its own
    Move* move;
  };

  const Problem& problem_;
  std::vector<std::unique_ptr<Move>> moves_;
  std::vector<Entry> entries_;
  Move* fallback_ = nullptr;
  int total_ = 0;
};

}  // namespace situate::search
