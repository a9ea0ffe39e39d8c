#include "simulation/blocking/blocking_timer.h"

#include <algorithm>
#include <array>
#include <limits>

#include "problem/sentinels.h"

namespace situate::sim {

namespace {

// Up to so many devices a checkpoint at every position costs less than timing some positions again.
constexpr int few_devices = 4;
constexpr int stride_of_many = 16;

// So that rounding in sums of times, one an op and few others, refuses no plan that is as good as
// the limit.
double slack_of(const Problem& p) {
  return 1 - 1e-12 - p.n * std::numeric_limits<double>::epsilon();
}

}  // namespace

bool BlockingTimer::supports(const Problem& p) {
  if (!p.blocking) return false;
  if (!p.contention) return true;
  // The devices that every pair on a channel has, if there are such: of the first pair, then fewer.
  std::vector<std::array<int, 2>> common(p.channels, {-2, -2});
  for (int a = 0; a < p.d; ++a)
    for (int b = 0; b < p.d; ++b) {
      if (a == b) continue;
      auto& shared = common[p.channel[static_cast<size_t>(a) * p.d + b]];
      if (shared[0] == -2) shared = {a, b};
      for (int& device : shared)
        if (device != a && device != b) device = -1;
      if (shared[0] == -1 && shared[1] == -1) return false;
    }
  return true;
}

BlockingTimer::BlockingTimer(const Problem& problem, const OrderedPlacement& plan,
                             const EarlyTransfers& early)
    : problem_(problem),
      plan_(plan),
      early_(early),
      longest_(problem.n),
      least_(problem.n),
      slack_(slack_of(problem)),
      instant_(instant_tensors(problem)),
      pairs_(std::count(instant_.begin(), instant_.end(), 1) ? pairs_of(problem.d) : 0),
      stride_(problem.d <= few_devices ? 1 : stride_of_many),
      width_(problem.d + 2 + pairs_),
      pair_(static_cast<size_t>(problem.d) * problem.d),
      state_(width_ + 1),
      checkpoints_((problem.n / stride_ + 1) * width_),
      new_checkpoints_(checkpoints_.size()),
      tails_((problem.n / stride_ + 1) * static_cast<size_t>(problem.d)),
      tail_(problem.d),
      end_(problem.n),
      new_end_(problem.n),
      sending_(static_cast<size_t>(problem.m) * problem.d, {problem.n, 0}),
      meeting_count_(problem.n),
      new_meeting_count_(problem.n) {
  index_inputs();
  derive_tails();
  if (pairs_)
    for (int a = 0; a < problem.d; ++a)
      for (int b = 0; b < problem.d; ++b)
        if (a != b) pair_[static_cast<size_t>(a) * problem.d + b] = pair_of(a, b);
  for (const double seconds : least_) checkpoints_[problem.d + 1] += seconds;
  begin_change();
  first_ = 0;
  last_ = problem.n;
  time(never);
  commit();
}

void BlockingTimer::index_inputs() {
  const auto& p = problem_;
  for (int op = 0; op < p.n; ++op) {
    input_start_.push_back(static_cast<int32_t>(inputs_.size()));
    signal_start_.push_back(static_cast<int32_t>(signals_.size()));
    meeting_start_.push_back(input_start_.back() + op * EarlyTransfers::most);
    for (const int tensor : p.inputs_of(op))
      (p.signal[tensor] ? signals_ : inputs_)
          .push_back({tensor, p.producer[tensor], instant_[tensor] != 0});
  }
  input_start_.push_back(static_cast<int32_t>(inputs_.size()));
  signal_start_.push_back(static_cast<int32_t>(signals_.size()));
  meetings_.resize(inputs_.size() + static_cast<size_t>(p.n) * EarlyTransfers::most);
  new_meetings_.resize(meetings_.size());
}

void BlockingTimer::derive_tails() {
  const auto& p = problem_;
  for (int i = p.n - 1; i >= 0; --i) {
    const int op = p.order[i];
    const double* row = p.seconds.data() + static_cast<size_t>(op) * p.d;
    least_[op] = *std::min_element(row, row + p.d);
    for (const int tensor : p.outputs_of(op))
      for (const int consumer : p.consumers_of(tensor))
        longest_[op] = std::max(longest_[op], longest_[consumer]);
    longest_[op] += least_[op];
  }
}

void BlockingTimer::begin_change() {
  first_ = changed_first_ = problem_.n;
  last_ = changed_last_ = last_instant_ = -1;
}

void BlockingTimer::affect(int position) {
  first_ = std::min(first_, position);
  last_ = std::max(last_, position);
}

void BlockingTimer::change(int position) {
  affect(position);
  changed_first_ = std::min(changed_first_, position);
  changed_last_ = std::max(changed_last_, position);
}

// A transfer that may be sent elsewhere in the order than before, by its consumers on the target or
// by its anchor; but no earlier than the ops that change, unless it has an anchor.
void BlockingTimer::affect_transfer(const EarlyTransfers::Transfer& transfer) {
  const int before = sending(transfer).at;
  if (before < problem_.n) last_ = std::max(last_, before);
  const int after = first_consumer(plan_, transfer);
  if (after < problem_.n) last_ = std::max(last_, after);
  const int anchor = early_.anchor_of(transfer);
  if (anchor != EarlyTransfers::none) first_ = std::min(first_, plan_.position(anchor));
}

void BlockingTimer::affect_outputs(int op) {
  for (const int tensor : problem_.outputs_of(op)) {
    if (problem_.signal[tensor]) continue;
    if (!instant_[tensor]) {
      for (int target = 0; target < problem_.d; ++target)
        if (target != plan_.device()[op] || sending({tensor, target}).at < problem_.n)
          affect_transfer({tensor, target});
      continue;
    }
    for (const int consumer : problem_.consumers_of(tensor))
      last_instant_ = std::max(last_instant_, plan_.position(consumer));
  }
}

void BlockingTimer::unit_moved(int unit, int from, int to) {
  for (const int op : problem_.members_of(unit)) {
    change(plan_.position(op));
    for (int k = input_start_[op]; k < input_start_[op + 1]; ++k) {
      if (inputs_[k].instant) continue;
      affect_transfer({inputs_[k].tensor, from});
      affect_transfer({inputs_[k].tensor, to});
    }
    affect_outputs(op);
  }
}

// It is an anchor elsewhere now, and what it makes may come after the anchors of its transfers.
void BlockingTimer::op_moved(int from, int to) {
  change(from);
  change(to);
  if (!early_.any()) return;
  const int op = plan_.order()[to];
  for (const auto& transfer : early_.before(op)) affect_transfer(transfer);
  affect_outputs(op);
}

void BlockingTimer::transfer_moved(const EarlyTransfers::Transfer& transfer) {
  const int before = sending(transfer).at;
  if (before < problem_.n) affect(before);
  affect_transfer(transfer);
}

double BlockingTimer::time(double limit) {
  const auto& p = problem_;
  first_ = std::min(first_, p.n - 1) / stride_ * stride_;
  settled_ = p.n;
  ++timing_;
  std::copy_n(checkpoint(checkpoints_, first_), width_, state_.begin());
  double* const free = state_.data();
  const double &busy = state_[p.d], &work_left = state_[p.d + 1];
  const double room = limit * p.d;
  const bool any_early = early_.any(), any_signal = !signals_.empty();
  for (int i = first_; i < p.n; ++i) {
    if (is_checkpoint(i)) {
      if (i > last_ && as_committed(i)) {
        settled_ = i;
        break;
      }
      keep_checkpoint(i);
    }
    const int op = plan_.order()[i], device = plan_.device()[op];
    new_meeting_count_[op] = 0;
    if (any_early) send_early(op, i);
    if (receives(op, device))
      for (int k = input_start_[op]; k < input_start_[op + 1]; ++k) receive(inputs_[k], op, i);
    const double start = any_signal ? std::max(free[device], signalled(op, device)) : free[device];
    if (start + longest_[op] > limit) return never;
    run(op, device, start);
    if ((busy + work_left) * slack_ > room) return never;
  }
  if (settled_ < p.n && bound_from(settled_) * slack_ > limit) return never;
  return resume(limit);
}

// Whether an op receives anything. Without a branch an input: a wrong guess takes as long as all of
// them.
inline bool BlockingTimer::receives(int op, int device) const {
  const double* const met = state_.data() + problem_.d + 2;
  const int32_t* const pair = pair_.data() + static_cast<size_t>(device) * problem_.d;
  unsigned any = 0;
  for (int k = input_start_[op]; k < input_start_[op + 1]; ++k) {
    const Input& input = inputs_[k];
    const int source = plan_.device()[input.producer];
    const unsigned remote = source != device;
    const unsigned instant = input.instant;
    const unsigned meets = plan_.position(input.producer) >= met[pair[source]];
    const Sending& to = sending_[static_cast<size_t>(input.tensor) * problem_.d + device];
    const unsigned sends = static_cast<unsigned>(to.at >= first_) & (to.timing != timing_);
    any |= remote & ((instant & meets) | (~instant & sends));
  }
  return any;
}

inline void BlockingTimer::keep_checkpoint(int position) {
  double* const kept = checkpoint(new_checkpoints_, position);
  for (size_t k = 0; k < width_; ++k) kept[k] = state_[k];
}

// Whether all meetings from here on are those of the committed plan: transfers that take time are,
// behind the last one that the change affects. One that takes none depends on when its two devices
// met last. Its producer ran before that or not, as in the committed plan, if they met behind all
// ops that have changed, or before all of these and their consumers are behind us, too.
bool BlockingTimer::as_committed(int position) const {
  const double* met = state_.data() + problem_.d + 2;
  const double* before = checkpoint(checkpoints_, position) + problem_.d + 2;
  for (int pair = 0; pair < pairs_; ++pair)
    if (met[pair] != before[pair] ||
        (met[pair] <= changed_last_ && (met[pair] > changed_first_ || position <= last_instant_)))
      return false;
  return true;
}

// No less than this is the makespan: exact but for rounding where no op waits for a signal.
double BlockingTimer::bound_from(int position) const {
  const double* tail = tails_.data() + static_cast<size_t>(position / stride_) * problem_.d;
  double bound = 0;
  for (int device = 0; device < problem_.d; ++device)
    bound = std::max(bound, state_[device] + tail[device]);
  return bound;
}

// On with the committed meetings, until all is as in the committed plan.
double BlockingTimer::resume(double limit) {
  const auto& p = problem_;
  for (converged_ = settled_; converged_ < p.n; ++converged_) {
    if (is_checkpoint(converged_)) {
      if (converged(converged_)) break;
      keep_checkpoint(converged_);
    }
    const int op = plan_.order()[converged_], device = plan_.device()[op];
    const Meeting* meeting = meetings_.data() + meeting_start_[op];
    for (int k = 0; k < meeting_count_[op]; ++k) {
      if (pairs_) state_[p.d + 2 + pair_of(meeting[k].source, meeting[k].target)] = converged_;
      stop_for(meeting[k]);
    }
    run(op, device,
        signals_.empty() ? state_[device] : std::max(state_[device], signalled(op, device)));
  }
  new_makespan_ =
      converged_ < p.n ? makespan_ : *std::max_element(state_.begin(), state_.begin() + p.d);
  return new_makespan_ > limit ? never : new_makespan_;
}

bool BlockingTimer::converged(int position) const {
  return signals_.empty() && std::equal(state_.begin(), state_.begin() + problem_.d,
                                        checkpoint(checkpoints_, position));
}

inline void BlockingTimer::run(int op, int device, double start) {
  const double end = start + problem_.op_seconds(op, device);
  state_[problem_.d] += end - state_[device];
  state_[problem_.d + 1] -= least_[op];
  state_[device] = new_end_[op] = end;
}

// Receives a tensor from another device unless it is there.
inline void BlockingTimer::receive(const Input& input, int op, int position) {
  const int source = plan_.device()[input.producer], target = plan_.device()[op];
  if (source == target) return;
  if (!input.instant) {
    send({input.tensor, target}, source, op, position);
  } else if (plan_.position(input.producer) >= state_[problem_.d + 2 + pair_of(source, target)]) {
    meet({0, -1, source, target}, op, position);
  }
}

void BlockingTimer::send_early(int op, int position) {
  for (const auto& transfer : early_.before(op)) {
    const int producer = problem_.producer[transfer.tensor], source = plan_.device()[producer];
    const Sending& to = sending(transfer);
    if (source != transfer.target && plan_.position(producer) < position && to.at >= first_ &&
        to.timing != timing_ && first_consumer(plan_, transfer) < problem_.n)
      send(transfer, source, op, position);
  }
}

inline void BlockingTimer::send(const EarlyTransfers::Transfer& transfer, int source, int op,
                                int position) {
  Sending& sending = this->sending(transfer);
  if (sending.at < first_ || sending.timing == timing_) return;
  sending.timing = timing_;
  const double seconds = problem_.transfer_seconds(transfer.tensor, source, transfer.target);
  meet({seconds, transfer.tensor, source, transfer.target}, op, position);
}

inline void BlockingTimer::meet(const Meeting& meeting, int op, int position) {
  if (pairs_) state_[problem_.d + 2 + pair_of(meeting.source, meeting.target)] = position;
  stop_for(meeting);
  new_meetings_[meeting_start_[op] + new_meeting_count_[op]++] = meeting;
}

inline void BlockingTimer::stop_for(const Meeting& meeting) {
  double &here = state_[meeting.target], &there = state_[meeting.source];
  const double end = std::max(here, there) + meeting.seconds;
  state_[problem_.d] += 2 * end - here - there;
  here = there = end;
}

// When the op has its signals from other devices.
double BlockingTimer::signalled(int op, int device) const {
  double latest = 0;
  for (int k = signal_start_[op]; k < signal_start_[op + 1]; ++k) {
    const int producer = signals_[k].producer;
    const double end = plan_.position(producer) < first_ ? end_[producer] : new_end_[producer];
    const bool same = plan_.device()[producer] == device;
    latest = std::max(latest, same ? end : end + problem_.synchronisation);
  }
  return latest;
}

void BlockingTimer::commit() {
  keep_meetings();
  keep_tails();
  makespan_ = new_makespan_;
  if (!signals_.empty())
    for (int i = first_; i < converged_; ++i) end_[plan_.order()[i]] = new_end_[plan_.order()[i]];
  const int count = (converged_ - first_ + stride_ - 1) / stride_;
  std::copy_n(checkpoint(new_checkpoints_, first_), count * width_,
              checkpoint(checkpoints_, first_));
}

void BlockingTimer::keep_meetings() {
  const auto each = [&](const std::vector<Meeting>& of, int op, int count, int at) {
    for (int k = 0; k < count; ++k) {
      const Meeting& meeting = of[meeting_start_[op] + k];
      if (meeting.tensor >= 0) sending({meeting.tensor, meeting.target}).at = at;
    }
  };
  const auto& order = plan_.order();
  for (int i = first_; i < settled_; ++i)
    each(meetings_, order[i], meeting_count_[order[i]], problem_.n);
  for (int i = first_; i < settled_; ++i) {
    const int op = order[i], count = new_meeting_count_[op];
    each(new_meetings_, op, count, i);
    std::copy_n(new_meetings_.data() + meeting_start_[op], count,
                meetings_.data() + meeting_start_[op]);
    meeting_count_[op] = count;
  }
}

// From where all is as before, back to where the tails are. Signals are left out: what is bounded
// with tails so is no more than the makespan.
void BlockingTimer::keep_tails() {
  const auto& p = problem_;
  const auto at = [&](int position) {
    return tails_.begin() + static_cast<size_t>(position / stride_) * p.d;
  };
  if (settled_ < p.n)
    std::copy_n(at(settled_), p.d, tail_.begin());
  else
    std::fill(tail_.begin(), tail_.end(), 0.0);
  for (int i = settled_ - 1; i >= 0; --i) {
    const int op = plan_.order()[i], device = plan_.device()[op];
    tail_[device] += p.op_seconds(op, device);
    for (int k = meeting_count_[op]; k-- > 0;) {
      const Meeting& meeting = meetings_[meeting_start_[op] + k];
      double &source = tail_[meeting.source], &target = tail_[meeting.target];
      source = target = std::max(source, target) + meeting.seconds;
    }
    if (!is_checkpoint(i)) continue;
    if (i <= first_ && std::equal(tail_.begin(), tail_.end(), at(i))) return;
    std::copy_n(tail_.begin(), p.d, at(i));
  }
}

}  // namespace situate::sim
