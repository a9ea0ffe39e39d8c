#include "search/line_split.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "problem/sentinels.h"

namespace situate::search {

namespace {

// The least load of the busiest device for every number of steps, with one device more than
// `before`, which takes one of its pieces or none. Writes the step at which its piece begins.
std::vector<double> with_another(const std::vector<double>& before,
                                 const std::vector<std::vector<double>>& pieces,
                                 std::vector<int32_t>& begin_of) {
  std::vector<double> after = before;
  std::iota(begin_of.begin(), begin_of.end(), 0);
  for (size_t begin = 0; begin + 1 < before.size(); ++begin) {
    if (before[begin] == never) continue;
    for (size_t j = 0; j < pieces[begin].size(); ++j) {
      const size_t end = begin + j + 1;
      const double busiest = std::max(before[begin], pieces[begin][j]);
      if (busiest >= after[end]) continue;
      after[end] = busiest;
      begin_of[end] = static_cast<int32_t>(begin);
    }
  }
  return after;
}

}  // namespace

LineSplit::LineSplit(LoadState& state, const int32_t* line)
    : state_(state), problem_(state.problem()), line_(line, line + problem_.units) {}

// The device that holds all units outside the piece while its load is measured.
int LineSplit::elsewhere(int device) const { return device == 0 ? problem_.d - 1 : 0; }

// Whether every piece may be on both devices or on neither, and loads both alike.
bool LineSplit::same_loads(int a, int b) const {
  const auto& p = problem_;
  if (state_.capacity(a) != state_.capacity(b) || p.pays[a] != p.pays[b]) return false;
  if ((p.blocking || p.atomic) && !same_links(a, b)) return false;
  for (int unit = 0; unit < p.units; ++unit)
    if (p.may_run(unit, a) != p.may_run(unit, b)) return false;
  for (int op = 0; op < p.n; ++op)
    if (p.op_seconds(op, a) != p.op_seconds(op, b)) return false;
  return true;
}

bool LineSplit::same_links(int a, int b) const {
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

// Devices with the same loads share their pieces.
const LineSplit::Pieces& LineSplit::pieces_on(int device, size_t step) {
  pieces_.resize(problem_.d);
  for (int other = 0; other < problem_.d; ++other)
    if (!pieces_[other].empty() && same_loads(device, other)) return pieces_[other];
  state_.place_all(elsewhere(device));
  for (size_t begin = 0; begin < line_.size(); begin += step)
    pieces_[device].push_back(pieces_from(begin, step, device));
  return pieces_[device];
}

// Grows a piece unit by unit until its ops do not fit, or alone take longer than the period of the
// best placement that fits.
std::vector<double> LineSplit::pieces_from(size_t begin, size_t step, int device) {
  const auto& p = problem_;
  const BestPlacement& best = state_.best();
  std::vector<double> loads;
  double work = 0;
  size_t end = begin;
  while (end < line_.size()) {
    const int unit = line_[end];
    for (const int op : p.members_of(unit)) work += p.op_seconds(op, device);
    const bool too_long = best.fits && work > best.period;
    if (too_long || !state_.has_room(unit, device) || !p.may_run(unit, device)) break;
    state_.place(unit, device);
    ++end;
    if (end % step == 0 || end == line_.size()) loads.push_back(state_.load(device));
  }
  while (end > begin) state_.place(line_[--end], elsewhere(device));
  return loads;
}

// before[i] is the least load of the busiest device if the devices so far take the first i steps of
// the line; begins.back()[i] is where the piece of the last of them begins then.
void LineSplit::split(const std::vector<int32_t>& devices, int step) {
  if (step != std::exchange(step_, step)) pieces_.clear();
  const size_t steps = (line_.size() + step - 1) / step;
  std::vector<double> before(steps + 1, never);
  before[0] = 0;
  std::vector<std::vector<int32_t>> begins;
  for (const int device : devices) {
    begins.emplace_back(steps + 1);
    before = with_another(before, pieces_on(device, step), begins.back());
  }
  if (before[steps] < never)
    cut(devices, begins, step);
  else
    state_.restart(std::vector<int32_t>(state_.best().device).data());
}

// Follows the begins of the pieces from the end of the line back to its start.
void LineSplit::cut(const std::vector<int32_t>& devices,
                    const std::vector<std::vector<int32_t>>& begins, size_t step) {
  std::vector<int32_t> placement(problem_.n);
  size_t end = begins.back().size() - 1;
  for (size_t k = devices.size(); k-- > 0;) {
    const size_t begin = begins[k][end];
    for (size_t i = begin * step; i < std::min(end * step, line_.size()); ++i)
      for (const int op : problem_.members_of(line_[i])) placement[op] = devices[k];
    end = begin;
  }
  state_.restart(placement.data());
}

}  // namespace situate::search
