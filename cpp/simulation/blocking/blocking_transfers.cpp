#include "simulation/blocking/blocking_transfers.h"

#include <algorithm>

namespace situate::sim {

namespace {

// Two devices stop for a transfer at a place of the order; `turn` counts such meetings.
struct Meeting {
  int32_t place = -1, turn = -1;
};

struct Turn {
  int32_t turn;
  PlacedTransfer transfer;
};

}  // namespace

std::vector<PlacedTransfer> blocking_transfers(const OrderedPlacement& plan,
                                               const EarlyTransfers& early) {
  const Problem& p = plan.problem();
  const auto& device = plan.device();
  const auto instant = instant_tensors(p);
  std::vector<Meeting> last(pairs_of(p.d));
  std::vector<uint8_t> received(static_cast<size_t>(p.m) * p.d, 0);
  std::vector<Turn> turns;
  int32_t turn = 0;
  const auto send = [&](int tensor, int target, int place) {
    const int producer = p.producer[tensor], source = device[producer];
    uint8_t& known = received[static_cast<size_t>(tensor) * p.d + target];
    if (source == target || p.signal[tensor] || known) return;
    known = 1;
    Meeting& meeting = last[pair_of(source, target)];
    if (!instant[tensor] || plan.position(producer) >= meeting.place) meeting = {place, turn++};
    turns.push_back({meeting.turn, {tensor, target, meeting.place}});
  };
  for (int place = 0; place < p.n; ++place) {
    const int op = plan.order()[place];
    for (const auto& transfer : early.before(op))
      if (plan.position(p.producer[transfer.tensor]) < place &&
          first_consumer(plan, transfer) < p.n)
        send(transfer.tensor, transfer.target, place);
    for (const int tensor : p.inputs_of(op)) send(tensor, device[op], place);
  }
  std::stable_sort(turns.begin(), turns.end(),
                   [](const Turn& a, const Turn& b) { return a.turn < b.turn; });
  std::vector<PlacedTransfer> transfers;
  for (const auto& it : turns) transfers.push_back(it.transfer);
  return transfers;
}

std::vector<uint8_t> instant_tensors(const Problem& p) {
  std::vector<uint8_t> instant(p.m);
  for (int tensor = 0; tensor < p.m; ++tensor) {
    bool all = !p.signal[tensor];
    for (int source = 0; source < p.d && all; ++source)
      for (int target = 0; target < p.d && all; ++target)
        all = source == target || p.transfer_seconds(tensor, source, target) == 0;
    instant[tensor] = all;
  }
  return instant;
}

}  // namespace situate::sim
