#include "search/memory_orders/heavy_paths.h"

#include <algorithm>
#include <span>

#include "search/memory_orders/live_tensors.h"

namespace situate::search {

namespace {

class HeavyPaths {
 public:
  HeavyPaths(const Problem& problem, Direction direction)
      : live_(problem),
        p_(problem),
        backwards_(direction == Direction::backwards),
        line_(p_.order),
        need_(p_.n),
        left_(p_.n),
        first_(p_.n),
        end_(p_.n) {
    if (backwards_) std::reverse(line_.begin(), line_.end());
    for (const int op : line_) weigh(op);
  }

  std::vector<int32_t> order() && {
    const auto ends = unawaited();
    std::vector<uint8_t> done(p_.n);
    std::vector<int32_t> found, stack;
    for (const int end : ends) {
      stack.push_back(end);
      while (!stack.empty()) {
        const int op = stack.back();
        // An op looks at each that it waits for once.
        int& next = first_[op];
        while (next < end_[op] && done[before_[next]]) ++next;
        if (next < end_[op]) {
          stack.push_back(before_[next]);
          continue;
        }
        stack.pop_back();
        if (!done[op]) found.push_back(op);
        done[op] = 1;
      }
    }
    if (backwards_) std::reverse(found.begin(), found.end());
    return found;
  }

 private:
  // Lists what an op waits for, what falls most first, and what its heaviest path needs.
  void weigh(int op) {
    first_[op] = static_cast<int32_t>(before_.size());
    if (backwards_) {
      for (const int tensor : p_.inputs_of(op)) left_[op] += live_.bytes(tensor);
      for (const int tensor : p_.outputs_of(op))
        for (const int reader : p_.consumers_of(tensor)) before_.push_back(reader);
    } else {
      left_[op] = live_.left(op);
      for (const int tensor : p_.inputs_of(op)) before_.push_back(p_.producer[tensor]);
    }
    const auto begin = before_.begin() + first_[op];
    std::sort(begin, before_.end());
    before_.erase(std::unique(begin, before_.end()), before_.end());
    by_fall(begin, before_.end());
    end_[op] = static_cast<int32_t>(before_.size());
    int64_t held = 0;
    for (int i = first_[op]; i < end_[op]; ++i) {
      need_[op] = std::max(need_[op], problem::add_bytes(held, need_[before_[i]]));
      held = problem::add_bytes(held, left_[before_[i]]);
    }
    const int64_t made = backwards_ ? left_[op] : live_.made(op);
    const int64_t own = problem::add_bytes(made, p_.workspace[op]);
    need_[op] = std::max(need_[op], problem::add_bytes(held, own));
  }

  template <typename Iterator>
  void by_fall(Iterator begin, Iterator end) const {
    std::stable_sort(begin, end,
                     [&](int a, int b) { return need_[a] - left_[a] > need_[b] - left_[b]; });
  }

  // Ops that nothing waits for, along the line; backwards what falls most first.
  std::vector<int32_t> unawaited() const {
    std::vector<uint8_t> awaited(p_.n);
    for (const int op : before_) awaited[op] = 1;
    std::vector<int32_t> found;
    for (const int op : line_)
      if (!awaited[op]) found.push_back(op);
    if (backwards_) by_fall(found.begin(), found.end());
    return found;
  }

  const LiveTensors live_;
  const Problem& p_;
  const bool backwards_;
  std::vector<int32_t> line_;         // the graph's order, in this direction
  std::vector<int64_t> need_, left_;  // bytes of the heaviest path that ends at each op
  std::vector<int32_t> before_;       // what each op waits for
  std::vector<int32_t> first_, end_;  // n, of `before_`
};

}  // namespace

std::vector<int32_t> heavy_path_order(const Problem& problem, Direction direction) {
  return HeavyPaths(problem, direction).order();
}

}  // namespace situate::search
