#include "simulation/blocking/blocking_items.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace situate::sim {

namespace {
constexpr float least = std::numeric_limits<float>::lowest();
}  // namespace

BlockingItems::BlockingItems(const Problem& problem)
    : problem_(problem),
      readers_(2 * problem.consumers.size() + 2),
      told_(problem.consumers.size() + 1),
      needs_(problem.n),
      item_(Timeline::most_items(problem)),
      first_told_(problem.n + 2),
      consumers_on_(problem.d),
      priority_(item_.size()) {
  for (int op = 0; op < problem.n; ++op) {
    needs_[op] = static_cast<int32_t>(problem.inputs_of(op).size());
    for (const int tensor : problem.outputs_of(op)) {
      if (problem.consumers_of(tensor).empty()) continue;
      if (!problem.signal[tensor])
        by_index_.push_back(static_cast<int32_t>(made_.items.size()));
      else if (problem.synchronisation > 0)
        timed_.items.push_back(tensor);
      has_signals_ = has_signals_ || problem.signal[tensor];
      made_.items.push_back(tensor);
      for (const int consumer : problem.consumers_of(tensor))
        edges_.push_back({consumer, tensor, op, false, problem.signal[tensor]});
      edges_.back().last = true;
    }
    made_.close();
    timed_.close();
  }
  first_sent_.resize(made_.items.size() + 1);
  const auto earlier = [&](int a, int b) { return made_.items[a] < made_.items[b]; };
  in_order_ = std::is_sorted(by_index_.begin(), by_index_.end(), earlier);
  std::sort(by_index_.begin(), by_index_.end(), earlier);
}

void BlockingItems::collect(const Decision& decision, Timeline& timeline) {
  std::copy_n(decision.priority, problem_.n, priority_.begin());
  if (problem_.d == 2)
    has_signals_ ? split_between_two<true>(decision, timeline)
                 : split_between_two<false>(decision, timeline);
  else
    split(decision, timeline);
  count_ = timeline.items();
  describe_ops(decision);
  describe_transfers(timeline);
  number_items(timeline);
  order_.sort({priority_.data(), sequence_.size()}, sequence_);
  for (const int tensor : timed_.items) signal_to_each(tensor, decision, timeline);
}

// Between two devices: one loop over all edges and no branch, for with random keys a processor
// guesses wrong whether a consumer is elsewhere, and how many a tensor has.
template <bool Signals>
void BlockingItems::split_between_two(const Decision& decision, Timeline& timeline) {
  int32_t beside = 0, away = first_away(), first = away, transfer = problem_.n, told = 0;
  float best = least;
  for (const auto& edge : edges_) {
    const int here = decision.placement[edge.producer];
    const bool elsewhere = decision.placement[edge.consumer] != here;
    readers_[beside] = readers_[away] = edge.consumer;
    beside += !elsewhere;
    if constexpr (Signals) {
      told_[told] = edge.consumer;
      told += elsewhere & edge.signal;
      first_told_[edge.producer + 1] = told;
      away += elsewhere & !edge.signal;
    } else {
      away += elsewhere;
    }
    const float urgency[] = {least, decision.priority[edge.consumer]};
    best = std::max(best, urgency[elsewhere]);
    // Of the edges of a tensor, what the last one writes stays.
    const bool sent = edge.last & (away > first);
    item_[transfer].first_reader = first;
    item_[transfer].last_reader = away;
    priority_[transfer] = urgency_of(edge.tensor, 1 - here, best, decision);
    timeline.add_only(edge.tensor, here, 1 - here, sent);
    readers_[beside] = transfer;
    beside += sent;
    item_[edge.producer].last_reader = beside;
    transfer += sent;
    const float so_far[] = {best, least};
    best = so_far[edge.last];
    first ^= (first ^ away) & -edge.last;
  }
  for (int op = 0, last = 0; op < problem_.n; ++op) {
    item_[op].first_reader = last;
    if (made_.start[op] == made_.start[op + 1]) {
      item_[op].last_reader = last;
      first_told_[op + 1] = first_told_[op];
    }
    last = item_[op].last_reader;
  }
  first_told_[problem_.n + 1] = first_told_[problem_.n];
}

void BlockingItems::split(const Decision& decision, Timeline& timeline) {
  Cursor at{0, first_away(), 0};
  for (int op = 0, place = 0; op < problem_.n; ++op) {
    item_[op].first_reader = at.beside;
    first_told_[op] = at.told;
    for (const int tensor : made_.row(op)) {
      first_sent_[place++] = timeline.count();
      if (problem_.signal[tensor])
        tell(tensor, decision, at);
      else
        send(tensor, decision, timeline, at);
    }
    item_[op].last_reader = at.beside;
  }
  first_sent_.back() = timeline.count();
  first_told_[problem_.n] = first_told_[problem_.n + 1] = at.told;
}

// Hands a tensor to the consumers beside its producer and to a transfer to each other device.
void BlockingItems::send(int tensor, const Decision& decision, Timeline& timeline, Cursor& at) {
  const int here = decision.placement[problem_.producer[tensor]];
  const int32_t first = at.away;
  for (const int consumer : problem_.consumers_of(tensor))
    (decision.placement[consumer] == here ? readers_[at.beside++] : readers_[at.away++]) = consumer;
  const std::span<int32_t> away(readers_.data() + first, readers_.data() + at.away);
  group_by_target(away, decision);
  for (size_t begin = 0; begin < away.size();) {
    const int target = decision.placement[away[begin]], transfer = timeline.items();
    float best = least;
    size_t end = begin;
    for (; end < away.size() && decision.placement[away[end]] == target; ++end)
      best = std::max(best, decision.priority[away[end]]);
    item_[transfer].first_reader = first + static_cast<int32_t>(begin);
    item_[transfer].last_reader = first + static_cast<int32_t>(end);
    readers_[at.beside++] = transfer;
    priority_[transfer] = urgency_of(tensor, target, best, decision);
    timeline.add(tensor, here, target);
    begin = end;
  }
}

// Puts consumers in the order of their devices.
void BlockingItems::group_by_target(std::span<int32_t> away, const Decision& decision) {
  find_targets(away, decision);
  int32_t next = 0;
  for (const int target : targets_) next += std::exchange(consumers_on_[target], next);
  grouped_.assign(away.begin(), away.end());
  for (const int consumer : grouped_)
    away[consumers_on_[decision.placement[consumer]]++] = consumer;
  for (const int target : targets_) consumers_on_[target] = 0;
}

// Counts consumers by device.
void BlockingItems::find_targets(std::span<const int32_t> consumers, const Decision& decision) {
  targets_.clear();
  for (const int consumer : consumers) {
    const int target = decision.placement[consumer];
    if (consumers_on_[target]++ == 0) targets_.push_back(target);
  }
  std::sort(targets_.begin(), targets_.end());
}

// Hands a signal to its consumers, who need not wait for a transfer.
void BlockingItems::tell(int tensor, const Decision& decision, Cursor& at) {
  const int here = decision.placement[problem_.producer[tensor]];
  for (const int consumer : problem_.consumers_of(tensor))
    (decision.placement[consumer] == here ? readers_[at.beside++] : told_[at.told++]) = consumer;
}

void BlockingItems::signal_to_each(int tensor, const Decision& decision, Timeline& timeline) {
  const int here = decision.placement[problem_.producer[tensor]];
  find_targets(problem_.consumers_of(tensor), decision);
  for (const int target : targets_) {
    consumers_on_[target] = 0;
    if (target != here) timeline.add(tensor, here, target);
  }
}

// The priority of a transfer: its own, or the best of its consumers'.
float BlockingItems::urgency_of(int tensor, int target, float best,
                                const Decision& decision) const {
  const size_t place = static_cast<size_t>(tensor) * problem_.d + target;
  return decision.transfer_priority ? decision.transfer_priority[place] : best;
}

// Of one priority an op goes before a transfer, then the lower index first.
void BlockingItems::number_items(const Timeline& timeline) {
  const auto known = static_cast<int>(sequence_.size());
  sequence_.resize(Timeline::most_items(problem_));
  if (in_order_) {
    if (known < count_) std::iota(sequence_.begin() + known, sequence_.end(), known);
  } else {
    if (known < problem_.n) std::iota(sequence_.begin(), sequence_.begin() + problem_.n, 0);
    int32_t next = problem_.n;
    for (const int place : by_index_) {
      if (problem_.d == 2) {
        const int transfer = timeline.first_transfer(made_.items[place]);
        sequence_[next] = problem_.n + transfer;
        next += transfer >= 0;
        continue;
      }
      for (int transfer = first_sent_[place]; transfer < first_sent_[place + 1]; ++transfer)
        sequence_[next++] = problem_.n + transfer;
    }
  }
  sequence_.resize(count_);
}

int BlockingItems::channel(int source, int target) const {
  if (!problem_.contention || source == target) return problem_.d + problem_.channels + source;
  return problem_.d + problem_.channel[static_cast<size_t>(source) * problem_.d + target];
}

void BlockingItems::describe_ops(const Decision& decision) {
  for (int op = 0; op < problem_.n; ++op) {
    Item& item = item_[op];
    item.source = item.target = decision.placement[op];
    item.seconds = problem_.op_seconds(op, item.source);
    item.channel = channel(item.source, item.source);
    item.op = op;
  }
}

// As Problem::transfer_seconds of what is no signal, without a branch.
double BlockingItems::seconds_of(const Transfer& transfer) const {
  const auto& p = problem_;
  const size_t pair = static_cast<size_t>(transfer.source) * p.d + transfer.target;
  const double own = p.own_seconds[transfer.tensor];
  const double linked =
      p.latency[pair] + static_cast<double>(p.size[transfer.tensor]) / p.bandwidth[pair];
  const double either[] = {linked, own};
  return either[own == own] + p.synchronisation;
}

void BlockingItems::describe_transfers(const Timeline& timeline) {
  for (int index = problem_.n; index < count_; ++index) {
    const auto& transfer = timeline.transfers()[index - problem_.n];
    Item& item = item_[index];
    item.source = transfer.source;
    item.target = transfer.target;
    item.seconds = seconds_of(transfer);
    item.channel = channel(item.source, item.target);
    item.op = problem_.n;
  }
}

}  // namespace situate::sim
