"""The share of each device in a placed step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from situate.runtime.device import Share
from situate.runtime.hardware import RealDevice
from situate.runtime.programs.placed import PlacedProgram


def share_of(
    placed: PlacedProgram,
    number: int,
    device: RealDevice,
    groups: Mapping[int, int],
    *,
    seed: int,
    commits: bool,
) -> Share:
    """The share of the device of that number.

    Args:
        groups: by number of a parameter that the step updates, the optimiser's group it is in.
        commits: the updates come last, and say that they begin.
    """
    names = placed.names
    home = {names.state[path]: where for path, where in placed.home.items()}
    here = frozenset(k for k, where in home.items() if where == number)
    text = partial(
        placed.sources[number].text,
        direct=not device.mirrored,
        commits=commits,
        laid_out=device.torch != "cpu",
    )
    return Share(
        text(timed=False),
        text(timed=True),
        tuple(names.kernels),
        tuple(value for _, value in names.constants.values()),
        {k: groups[k] for k in placed.updated if k in here},
        placed.program.optimizer,
        len(placed.channels),
        len({*names.seeds.values()}),
        seed,
        here,
        here & placed.overwritten,
        one=names.one,
    )
