#include "bounds/least_live.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace situate::bounds {
namespace {

// Nodes of the network: those of ops that have ended and that wait, then one for every other op.
constexpr int ended = 0, waits = 1, first_free = 2;

}  // namespace

LeastLive::LeastLive(int n, std::span<const int32_t> before, std::span<const int32_t> after)
    : n_(n), before_(n, after, before), after_(n, before, after), side_(n), node_(n) {}

int64_t LeastLive::least(const Held& held, std::span<const int32_t> orders,
                         std::span<const uint8_t> runs, int64_t work, double seconds) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  const auto out_of_time = [&] {
    return std::chrono::duration<double>(clock::now() - begin).count() >= seconds;
  };
  // No op needs more than in the best of the orders: those that need no more than the best bound
  // so far cannot raise it.
  auto most = in_order(held, orders.first(n_));
  for (size_t i = n_; i < orders.size(); i += n_) {
    const auto other = in_order(held, orders.subspan(i, n_));
    for (int op = 0; op < n_; ++op) most[op] = std::min(most[op], other[op]);
  }
  std::vector<int> ops(n_);
  std::iota(ops.begin(), ops.end(), 0);
  std::stable_sort(ops.begin(), ops.end(), [&](int a, int b) { return most[a] > most[b]; });
  int64_t best = 0;
  for (const int op : ops) {
    if (most[op] <= best || work <= 0 || out_of_time()) break;
    if (runs[op]) best = std::max(best, least_during(held, op, work));
  }
  return best;
}

// (n,) live while each op runs in an order.
std::vector<int64_t> LeastLive::in_order(const Held& held, std::span<const int32_t> order) const {
  std::vector<int> place(n_);
  for (int i = 0; i < n_; ++i) place[order[i]] = i;
  std::vector<int64_t> change(n_ + 1);
  for (int tensor = 0; tensor < held.tensors(); ++tensor) {
    int last = place[held.producer[tensor]];
    change[last] += held.size[tensor];
    for (const int consumer : held.consumers[tensor]) last = std::max(last, place[consumer]);
    change[held.output[tensor] ? n_ : last + 1] -= held.size[tensor];
  }
  std::vector<int64_t> live(n_);
  int64_t now = 0;
  for (int i = 0; i < n_; ++i) {
    now += change[i];
    live[order[i]] = now + held.workspace[order[i]];
  }
  return live;
}

// The fewest bytes live while the op runs, of all sets of ops that may have ended by then, or fewer
// where `work` is not enough.
int64_t LeastLive::least_during(const Held& held, int op, int64_t& work) {
  take_sides(op);
  int nodes = first_free;
  for (int i = 0; i < n_; ++i)
    node_[i] = side_[i] == Side::free ? nodes++ : side_[i] == Side::ended ? ended : waits;
  cut_.reset(nodes);
  add_dependencies();
  int64_t always = held.workspace[op];
  for (int tensor = 0; tensor < held.tensors(); ++tensor) always += add_tensor(held, tensor, op);
  work -= n_ + held.tensors() + before_.items() + held.consumers.items();
  return always + cut_.solve(ended, waits, work);
}

// What the op reads from has ended by its start; what reads from it waits for its end.
void LeastLive::take_sides(int op) {
  std::fill(side_.begin(), side_.end(), Side::free);
  spread(op, Side::ended, before_);
  spread(op, Side::waits, after_);
  side_[op] = Side::waits;
}

void LeastLive::spread(int op, Side side, const Rows& next) {
  stack_.assign(1, op);
  while (!stack_.empty()) {
    const int from = stack_.back();
    stack_.pop_back();
    for (const int to : next[from]) {
      if (side_[to] == side) continue;
      side_[to] = side;
      stack_.push_back(to);
    }
  }
}

// An op that has ended has all before it behind it.
void LeastLive::add_dependencies() {
  for (int op = 0; op < n_; ++op) {
    if (side_[op] != Side::free) continue;
    for (const int before : before_[op])
      if (side_[before] == Side::free) cut_.add(node_[op], node_[before], MinimumCut::uncuttable);
  }
}

// Adds a tensor that some set of ended ops frees and another does not; returns the bytes of one
// that is live with all of them.
int64_t LeastLive::add_tensor(const Held& held, int tensor, int op) {
  const int producer = held.producer[tensor], from = node_[producer];
  const int64_t size = held.size[tensor];
  if (producer == op) return size;
  if (from == waits) return 0;
  bool kept = held.output[tensor];
  waiting_.clear();
  for (const int consumer : held.consumers[tensor]) {
    kept |= node_[consumer] == waits;
    if (node_[consumer] >= first_free) waiting_.push_back(node_[consumer]);
  }
  if (kept && from == ended) return size;
  if (kept)
    cut_.add(from, waits, size);
  else
    add_freed(from, size);
  return 0;
}

// A tensor is live where its producer has ended and one of those that it waits for has not.
void LeastLive::add_freed(int from, int64_t size) {
  if (waiting_.empty()) return;
  if (waiting_.size() == 1) {
    cut_.add(from, waiting_[0], size);
    return;
  }
  const int freed = cut_.add_node();
  cut_.add(from, freed, size);
  for (const int node : waiting_) cut_.add(freed, node, MinimumCut::uncuttable);
}

}  // namespace situate::bounds
