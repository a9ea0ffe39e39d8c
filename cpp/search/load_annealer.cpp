#include "search/load_annealer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace situate::search {

namespace {
constexpr int64_t steps_between_questions = 256;
constexpr int64_t steps_between_recounts = 1 << 16;  // sums of differences drift
}  // namespace

LoadAnnealer::LoadAnnealer(const Problem& problem, uint64_t seed, const int32_t* placement,
                           const int32_t* line)
    : problem_(problem),
      random_(seed),
      bytes_(problem.persistent.begin(), problem.persistent.end()),
      capacity_(problem.capacity.begin(), problem.capacity.end()),
      stamp_(problem.units, 0),
      tensor_stamp_(problem.m, 0),
      line_(line, line + problem.units) {
  const auto& p = problem_;
  weigh_units();
  for (int unit = 0; unit < p.units; ++unit) {
    int choices = 0;
    for (int device = 0; device < p.d; ++device) choices += p.may_run(unit, device);
    if (choices > 1) movable_.push_back(unit);
  }
  restart(placement);
}

void LoadAnnealer::weigh_units() {
  held_by_unit_.assign(problem_.units, 0);
  for (int op = 0; op < problem_.n; ++op) held_by_unit_[problem_.unit[op]] += bytes_[op];
}

void LoadAnnealer::weigh(const int64_t* held, const int64_t* capacity) {
  bytes_.assign(held, held + problem_.n);
  capacity_.assign(capacity, capacity + problem_.d);
  pieces_.clear();
  weigh_units();
  best_.clear();
  best_fits_ = false;
  count_all();
  cost_ = cost();
  keep_if_best();
}

void LoadAnnealer::restart(const int32_t* placement) {
  device_.assign(placement, placement + problem_.n);
  count_all();
  cost_ = cost();
  keep_if_best();
}

void LoadAnnealer::keep_if_best() {
  const bool better = fits() == best_fits_ ? best_.empty() || period() < best_period_ : fits();
  if (!better) return;
  best_ = device_;
  best_fits_ = fits();
  best_period_ = period();
}

void LoadAnnealer::count_all() {
  const auto& p = problem_;
  consumers_on_.assign(static_cast<size_t>(p.m) * p.d, 0);
  load_.assign(static_cast<size_t>(p.d) + p.channels, 0.0);
  held_.assign(p.d, 0);
  for (int op = 0; op < p.n; ++op) {
    load_[device_[op]] += p.op_seconds(op, device_[op]);
    held_[device_[op]] += bytes_[op];
  }
  for (int tensor = 0; tensor < p.m; ++tensor) {
    for (const int consumer : p.consumers_of(tensor))
      ++consumers_on_[static_cast<size_t>(tensor) * p.d + device_[consumer]];
    add_tensor(tensor, 1);
  }
}

// Adds (or takes away) what the transfers of a tensor occupy.
void LoadAnnealer::add_tensor(int tensor, double sign) {
  const auto& p = problem_;
  if (p.signal[tensor]) return;
  const int source = device_[p.producer[tensor]];
  const int32_t* on = consumers_on_.data() + static_cast<size_t>(tensor) * p.d;
  double leaving = 0;
  for (int target = 0; target < p.d; ++target) {
    if (target == source || on[target] == 0) continue;
    const double seconds = p.transfer_seconds(tensor, source, target);
    if (p.atomic) {
      leaving = std::max(leaving, seconds);
      if (p.pays[target]) load_[target] += sign * seconds;
      continue;
    }
    if (p.contention)
      load_[p.d + p.channel[static_cast<size_t>(source) * p.d + target]] += sign * seconds;
    if (p.blocking) {
      load_[source] += sign * seconds;
      load_[target] += sign * seconds;
    }
  }
  if (p.atomic && p.pays[source]) load_[source] += sign * leaving;
}

void LoadAnnealer::move(int unit, int device) {
  const auto& p = problem_;
  const auto members = p.members_of(unit);
  const int from = device_[members[0]];
  moved_.push_back({unit, from});
  touched_.clear();
  ++now_;
  const auto touch = [&](int tensor) {
    if (tensor_stamp_[tensor] == now_) return;
    tensor_stamp_[tensor] = now_;
    touched_.push_back(tensor);
    add_tensor(tensor, -1);
  };
  for (const int op : members) {
    for (const int tensor : p.inputs_of(op)) touch(tensor);
    for (const int tensor : p.outputs_of(op)) touch(tensor);
  }
  for (const int op : members) {
    load_[from] -= p.op_seconds(op, from);
    load_[device] += p.op_seconds(op, device);
    device_[op] = device;
    for (const int tensor : p.inputs_of(op)) {
      --consumers_on_[static_cast<size_t>(tensor) * p.d + from];
      ++consumers_on_[static_cast<size_t>(tensor) * p.d + device];
    }
  }
  for (const int tensor : touched_) add_tensor(tensor, 1);
  held_[from] -= held_by_unit_[unit];
  held_[device] += held_by_unit_[unit];
}

void LoadAnnealer::undo() {
  undone_.swap(moved_);
  moved_.clear();
  for (auto it = undone_.rbegin(); it != undone_.rend(); ++it) move(it->unit, it->from);
  moved_.clear();
}

int LoadAnnealer::other_device(int unit) {
  const int here = device_[problem_.members_of(unit)[0]];
  for (;;) {
    const int device = random_.below(problem_.d);
    if (device != here && problem_.may_run(unit, device)) return device;
  }
}

// Moves one unit, or a connected region of them, or one unit to where a neighbour is.
void LoadAnnealer::propose() {
  const auto& p = problem_;
  moved_.clear();
  if (random_.below(8) == 0 && trade()) return;
  const int unit = movable_[random_.below(static_cast<int>(movable_.size()))];
  const auto members = p.members_of(unit);
  const int op = members[random_.below(static_cast<int>(members.size()))];
  const int here = device_[op];
  int device = -1;
  const auto look = [&](std::span<const int32_t> tensors, bool forwards) {
    if (tensors.empty()) return;
    const int tensor = tensors[random_.below(static_cast<int>(tensors.size()))];
    const auto consumers = p.consumers_of(tensor);
    if (forwards && consumers.empty()) return;
    const int neighbour = forwards ? consumers[random_.below(static_cast<int>(consumers.size()))]
                                   : p.producer[tensor];
    if (device_[neighbour] != here && p.may_run(unit, device_[neighbour]))
      device = device_[neighbour];
  };
  if (random_.below(10) < 8) look(random_.below(2) ? p.outputs_of(op) : p.inputs_of(op), false);
  if (device < 0 && random_.below(10) < 8) look(p.outputs_of(op), true);
  if (device < 0) device = other_device(unit);
  int most = 1;
  while (most < 256 && random_.below(2) > 0) most *= 2;
  const size_t size = 1 + static_cast<size_t>(random_.below(most));
  block_.assign(1, unit);
  stamp_[unit] = ++now_;
  const bool forwards = random_.below(2) > 0, backwards = !forwards || random_.below(2) > 0;
  const auto visit = [&](int other) {
    const int u = p.unit[other];
    if (stamp_[u] == now_ || device_[other] != here || block_.size() >= size ||
        !p.may_run(u, device))
      return;
    stamp_[u] = now_;
    block_.push_back(u);
  };
  for (size_t i = 0; i < block_.size() && block_.size() < size; ++i)
    for (const int member : p.members_of(block_[i])) {
      if (backwards)
        for (const int tensor : p.inputs_of(member)) visit(p.producer[tensor]);
      if (forwards)
        for (const int tensor : p.outputs_of(member))
          for (const int consumer : p.consumers_of(tensor)) visit(consumer);
    }
  for (const int u : block_) move(u, device);
}

// Two units trade devices: where memory is tight neither can move alone.
bool LoadAnnealer::trade() {
  const int a = movable_[random_.below(static_cast<int>(movable_.size()))];
  const int b = movable_[random_.below(static_cast<int>(movable_.size()))];
  const int here = device_[problem_.members_of(a)[0]], there = device_[problem_.members_of(b)[0]];
  if (here == there || !problem_.may_run(a, there) || !problem_.may_run(b, here)) return false;
  move(a, there);
  move(b, here);
  return true;
}

// The device that holds what a piece on this one does not.
int LoadAnnealer::elsewhere(int device) const { return device == 0 ? problem_.d - 1 : 0; }

// Whether every piece may be on both devices or on neither, and loads both alike.
bool LoadAnnealer::same_kind(int a, int b) const {
  const auto& p = problem_;
  if (capacity_[a] != capacity_[b] || p.pays[a] != p.pays[b]) return false;
  if ((p.blocking || p.atomic) && !same_links(a, b)) return false;
  for (int unit = 0; unit < p.units; ++unit)
    if (p.may_run(unit, a) != p.may_run(unit, b)) return false;
  for (int op = 0; op < p.n; ++op)
    if (p.op_seconds(op, a) != p.op_seconds(op, b)) return false;
  return true;
}

bool LoadAnnealer::same_links(int a, int b) const {
  const auto& p = problem_;
  const auto pair = [&](int source, int target) {
    return static_cast<size_t>(source) * p.d + target;
  };
  const auto same = [&](size_t x, size_t y) {
    return p.latency[x] == p.latency[y] && p.bandwidth[x] == p.bandwidth[y];
  };
  return same(pair(a, elsewhere(a)), pair(b, elsewhere(b))) &&
         same(pair(elsewhere(a), a), pair(elsewhere(b), b));
}

// Loads of all pieces of the line on a device; equal devices share them.
const std::vector<std::vector<double>>& LoadAnnealer::pieces_on(int device, size_t step) {
  const auto& p = problem_;
  pieces_.resize(p.d);
  for (int other = 0; other < p.d; ++other)
    if (!pieces_[other].empty() && same_kind(device, other)) return pieces_[other];
  std::fill(device_.begin(), device_.end(), elsewhere(device));
  count_all();
  for (size_t begin = 0; begin < line_.size(); begin += step)
    pieces_[device].push_back(pieces_from(begin, step, device));
  return pieces_[device];
}

// Grows a piece unit by unit until its ops do not fit, or alone take longer than the period of the
// best that fits.
std::vector<double> LoadAnnealer::pieces_from(size_t begin, size_t step, int device) {
  const auto& p = problem_;
  std::vector<double> loads;
  double work = 0;
  size_t end = begin;
  while (end < line_.size()) {
    const int unit = line_[end];
    for (const int op : p.members_of(unit)) work += p.op_seconds(op, device);
    const bool fits = held_[device] + held_by_unit_[unit] <= capacity_[device];
    const bool too_long = best_fits_ && work > best_period_;
    if (too_long || !fits || !p.may_run(unit, device)) break;
    move(unit, device);
    ++end;
    if (end % step == 0 || end == line_.size()) loads.push_back(load_[device]);
  }
  while (end > begin) move(line_[--end], elsewhere(device));
  moved_.clear();
  return loads;
}

void LoadAnnealer::split(const std::vector<int32_t>& devices, int step) {
  constexpr double never = std::numeric_limits<double>::infinity();
  if (step != std::exchange(step_, step)) pieces_.clear();
  const size_t blocks = (line_.size() + step - 1) / step;
  std::vector<double> before(blocks + 1, never);
  before[0] = 0;
  std::vector<std::vector<int32_t>>
      begins;  // of each device: where its piece that ends at i begins
  for (const int device : devices) {
    const auto& pieces = pieces_on(device, step);
    std::vector<double> after = before;
    begins.emplace_back(blocks + 1);
    for (size_t i = 0; i <= blocks; ++i) begins.back()[i] = static_cast<int32_t>(i);
    for (size_t begin = 0; begin < blocks; ++begin) {
      if (before[begin] == never) continue;
      for (size_t j = 0; j < pieces[begin].size(); ++j) {
        const double busiest = std::max(before[begin], pieces[begin][j]);
        if (busiest >= after[begin + j + 1]) continue;
        after[begin + j + 1] = busiest;
        begins.back()[begin + j + 1] = static_cast<int32_t>(begin);
      }
    }
    before = std::move(after);
  }
  if (before[blocks] < never)
    cut(devices, begins, step);
  else
    restart(best_.data());
}

void LoadAnnealer::cut(const std::vector<int32_t>& devices,
                       const std::vector<std::vector<int32_t>>& begins, size_t step) {
  size_t end = begins.back().size() - 1;
  for (size_t k = devices.size(); k-- > 0;) {
    const size_t begin = begins[k][end];
    for (size_t i = begin * step; i < std::min(end * step, line_.size()); ++i)
      for (const int op : problem_.members_of(line_[i])) device_[op] = devices[k];
    end = begin;
  }
  count_all();
  cost_ = cost();
  keep_if_best();
}

double LoadAnnealer::period() const { return *std::max_element(load_.begin(), load_.end()); }

bool LoadAnnealer::fits() const {
  for (int device = 0; device < problem_.d; ++device)
    if (held_[device] > capacity_[device]) return false;
  return true;
}

// A smooth maximum (the 16-norm), so that easing any busy resource helps; memory over capacity
// costs.
double LoadAnnealer::cost() const {
  const double most = period();
  if (most <= 0) return 0;
  double sum = 0;
  for (const double load : load_) {
    const double x = load / most, x2 = x * x, x4 = x2 * x2, x8 = x4 * x4;
    sum += x8 * x8;
  }
  double overflow = 0;
  for (int device = 0; device < problem_.d; ++device) {
    const auto excess = static_cast<double>(held_[device] - capacity_[device]);
    const auto room = std::max<int64_t>(1, capacity_[device]);
    overflow += std::max(0.0, excess / static_cast<double>(room));
  }
  const double penalty = overflow > 0 ? 1.05 + 10 * overflow : 1;
  return most * std::sqrt(std::sqrt(std::sqrt(std::sqrt(sum)))) * penalty;
}

void LoadAnnealer::run(double temperature, int64_t evaluations,
                       const std::function<bool()>& ended) {
  if (movable_.empty()) return;
  for (int64_t i = 0; i < evaluations; ++i) {
    if (i % steps_between_questions == 0 && ended()) return;
    if (i % steps_between_recounts == steps_between_recounts - 1) count_all();
    ++evaluations_;
    propose();
    const double limit = cost_ - temperature * std::log(random_.unit() + 1e-300);
    const double candidate = cost();
    if (candidate > limit) {
      undo();
      continue;
    }
    cost_ = candidate;
    keep_if_best();
  }
}

}  // namespace situate::search
