"""The incumbent as the solver's first guess."""

from __future__ import annotations

import numpy as np

from situate.data.topology import unit_devices
from situate.solvers.exact.clock import Clock
from situate.solvers.exact.placing import Placing
from situate.solvers.exact.timing import Timing
from situate.solvers.incumbent import Candidate


def hint_placement(placing: Placing, incumbent: Candidate) -> None:
    """Hint the devices of units and the transfers that follow from them."""
    problem, model = placing.problem, placing.model
    device_of = unit_devices(problem, incumbent.placement).tolist()
    for (unit, device), here in placing.on.items():
        model.add_hint(here, device_of[unit] == device)
    sent = {arrival: _sent(placing, incumbent, *arrival) for arrival in placing.received}
    for arrival, received in placing.received.items():
        model.add_hint(received, sent[arrival])
    for move, literal in zip(placing.moves, placing.occurs, strict=True):
        at_home = device_of[placing.home(move.tensor)] == move.source
        model.add_hint(literal, at_home and sent[move.arrival])


def _sent(placing: Placing, incumbent: Candidate, tensor: int, target: int) -> bool:
    """True if the plan sends a tensor to a device."""
    if incumbent.placement[placing.problem.producer[tensor]] == target:
        return False
    return any(incumbent.placement[op] == target for op in placing.readers(tensor, target))


def hint_times(placing: Placing, timing: Timing, clock: Clock, incumbent: Candidate) -> None:
    """Hint the starts of ops and transfers."""
    schedule, model = incumbent.schedule, placing.model
    # Signals start at instants that the model does not have.
    moves = np.flatnonzero(~placing.problem.signal[schedule.tensor])
    ticks = clock.at(np.concatenate((schedule.start, schedule.transfer_start[moves]))).tolist()
    arrivals = zip(schedule.tensor[moves].tolist(), schedule.target[moves].tolist(), strict=True)
    starts = [*timing.start, *(timing.sent[arrival] for arrival in arrivals)]
    for start, tick in zip(starts, ticks, strict=True):
        model.add_hint(start, tick)
