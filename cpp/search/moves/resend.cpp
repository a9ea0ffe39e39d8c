#include "search/moves/resend.h"

#include "simulation/blocking/blocking_transfers.h"

namespace situate::search {

ResendMove::ResendMove(const sim::OrderedPlacement& plan, const sim::EarlyTransfers& early)
    : plan_(plan), early_(early) {
  const Problem& p = plan.problem();
  const auto instant = sim::instant_tensors(p);
  for (int tensor = 0; tensor < p.m; ++tensor)
    if (!instant[tensor] && !p.signal[tensor])
      for (const int consumer : p.consumers_of(tensor)) readers_.push_back({tensor, consumer});
}

bool ResendMove::propose(SplitMix64& random) {
  change_.clear();
  const Reader& reader = readers_[random.below(static_cast<int>(readers_.size()))];
  const int producer = plan_.problem().producer[reader.tensor];
  const sim::EarlyTransfers::Transfer transfer{reader.tensor, plan_.device()[reader.op]};
  if (plan_.device()[producer] == transfer.target) return false;
  const int first = plan_.position(producer) + 1, last = sim::first_consumer(plan_, transfer);
  const int place = first + random.below(last - first + 1);
  auto& sent = change_.sent;
  sent.from = early_.place_of(transfer);
  sent.to = {};
  if (place < last) {
    const int anchor = plan_.order()[place];
    if (anchor == sent.from.anchor || early_.full(anchor)) return false;
    sent.to = {anchor, random.below(static_cast<int>(early_.before(anchor).size()) + 1)};
  } else if (sent.from.anchor == sim::EarlyTransfers::none) {
    return false;
  }
  sent.transfer = transfer;
  return true;
}

}  // namespace situate::search
