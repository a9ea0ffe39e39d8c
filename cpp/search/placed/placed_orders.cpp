#include "search/placed/placed_orders.h"

#include <utility>

#include "search/placed/frugal_order.h"

namespace situate::search {

PlacedOrders::PlacedOrders(const Problem& problem, std::vector<int32_t> device,
                           std::span<const int32_t> line)
    : device_(std::move(device)),
      turns_(std::make_unique<Turns>(problem, device_, frugal_order(problem, device_, line))) {
  if (fits()) return;
  auto listed = std::make_unique<Turns>(problem, device_, problem.order);
  if (listed->admission.excess() < turns_->admission.excess()) turns_ = std::move(listed);
}

}  // namespace situate::search
