#include "search/placed/placed_orders.h"

#include <utility>

#include "search/placed/draining_order.h"
#include "search/placed/frugal_order.h"

namespace situate::search {

PlacedOrders::PlacedOrders(const Problem& problem, std::vector<int32_t> device,
                           std::span<const int32_t> line)
    : device_(std::move(device)),
      turns_(std::make_unique<Turns>(problem, device_, draining_order(problem, line))) {
  if (!fits()) consider(frugal_order(problem, device_, line));
  if (!fits()) consider(problem.order);
}

// Other turns for the ops, if these fit better.
void PlacedOrders::consider(std::vector<int32_t> turns) {
  auto other = std::make_unique<Turns>(problem(), device_, std::move(turns));
  if (other->admission.excess() < turns_->admission.excess()) turns_ = std::move(other);
}

}  // namespace situate::search
