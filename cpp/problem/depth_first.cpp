#include "problem/depth_first.h"

#include <algorithm>
#include <iterator>

namespace situate::problem {

std::vector<int32_t> depth_first_order(std::span<const int32_t> order,
                                       std::span<const int64_t> start,
                                       std::span<const int32_t> before) {
  std::vector<uint8_t> has_successor(order.size()), reached(order.size());
  for (const int32_t op : before) has_successor[op] = 1;
  std::vector<int32_t> visited, stack;
  visited.reserve(order.size());
  std::copy_if(order.rbegin(), order.rend(), std::back_inserter(stack),
               [&](int32_t op) { return !has_successor[op]; });
  // The complement of an op stands below its predecessors, and is met when they are visited.
  while (!stack.empty()) {
    const int32_t top = stack.back();
    stack.pop_back();
    if (top < 0) {
      visited.push_back(~top);
    } else if (!reached[top]) {
      reached[top] = 1;
      stack.push_back(~top);
      stack.insert(stack.end(), before.begin() + start[top], before.begin() + start[top + 1]);
    }
  }
  return visited;
}

}  // namespace situate::problem
