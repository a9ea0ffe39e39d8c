#include "search/memory_orders/part_search.h"

#include <algorithm>

namespace situate::search {

namespace {

constexpr ChunkSet bit(int chunk) { return ChunkSet{1} << chunk; }

}  // namespace

PartSearch::PartSearch(const Part& part)
    : part_(part), all_(~ChunkSet{0} >> (most_chunks - part.chunks())) {}

bool PartSearch::within(int64_t limit, int64_t& sets) {
  order_.clear();
  seen_.clear();
  return complete(0, part_.before, limit, sets);
}

int64_t PartSearch::peak() const {
  ChunkSet done = 0;
  Use now{part_.before, part_.before};
  for (const int chunk : order_) {
    const Use next = use(chunk, done, now.after);
    now = {std::max(now.peak, next.peak), next.after};
    done |= bit(chunk);
  }
  return now.peak;
}

// Bytes while a chunk runs and after it.
PartSearch::Use PartSearch::use(int chunk, ChunkSet done, int64_t now) const {
  Use use{now, now};
  done |= bit(chunk);
  int step = chunk == 0 ? 0 : part_.ends[chunk - 1];
  int shared = step == 0 ? 0 : part_.steps[step - 1].shared_end;
  for (; step < part_.ends[chunk]; ++step) {
    use.peak = std::max(use.peak, problem::add_bytes(use.after, part_.steps[step].rise));
    use.after += part_.steps[step].change;
    for (; shared < part_.steps[step].shared_end; ++shared)
      if ((part_.shared[shared].readers & ~done) == 0) use.after -= part_.shared[shared].bytes;
  }
  return use;
}

bool PartSearch::is_open(int chunk, ChunkSet done) const {
  return (done & bit(chunk)) == 0 && (part_.needs[chunk] & ~done) == 0;
}

// Runs what only lets go, and returns what else could run next, that after which least is in use
// first.
std::vector<PartSearch::Next> PartSearch::advance(ChunkSet& done, int64_t& now, int64_t limit) {
  std::vector<Next> found;
  for (int chunk = 0; chunk < part_.chunks(); ++chunk) {
    if (!is_open(chunk, done)) continue;
    const Use next = use(chunk, done, now);
    if (next.peak > limit) continue;
    if (next.after > now) {
      found.push_back({next.after, chunk});
      continue;
    }
    order_.push_back(chunk);
    done |= bit(chunk);
    now = next.after;
    found.clear();
    chunk = -1;  // others may be open now, or let go of more
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool PartSearch::complete(ChunkSet done, int64_t now, int64_t limit, int64_t& sets) {
  const auto next = advance(done, now, limit);
  if (done == all_) return true;
  if (!seen_.insert(done).second || --sets < 0) return false;
  const auto length = order_.size();
  for (const auto& [after, chunk] : next) {
    order_.push_back(chunk);
    if (complete(done | bit(chunk), after, limit, sets)) return true;
    order_.resize(length);
    if (sets < 0) break;
  }
  return false;
}

}  // namespace situate::search
