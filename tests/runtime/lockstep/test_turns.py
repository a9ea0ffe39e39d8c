"""Slices that run in turns up to where they meet."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.errors import SituateError  # noqa: E402
from situate.runtime.lockstep.turns import Lockstep  # noqa: E402


class Place:
    """Notes who enters and leaves it."""

    def __init__(self, log, name):
        self._log, self._name = log, name

    def put(self):
        self._log.append(f"+{self._name}")

    def take(self):
        self._log.append(f"-{self._name}")


def lockstep(count=3, log=None):
    log = [] if log is None else log
    return Lockstep([Place(log, s) for s in range(count)])


def test_slices_take_turns_and_get_what_is_made_of_all():
    log = []
    steps = lockstep(2, log)

    def run(s):
        total = steps.meet(s + 1, sum)
        log.append(f"{s}: {total}")
        return steps.meet(10 * s, list)

    assert steps.results([lambda: run(0), lambda: run(1)]) == [[0, 10], [0, 10]]
    assert log == [
        *("+0", "-0", "+1", "-1", "+0", "0: 3", "-0", "+1", "1: 3", "-1"),
        *("+0", "-0", "+1", "-1"),
    ]


@pytest.mark.parametrize("meetings", [(2, 1, 2), (1, 2, 2), (2, 2, 1), (1, 1, 2), (0, 1, 1)])
def test_unequal_numbers_of_meetings_are_an_error(meetings):
    steps = lockstep()

    def run(count):
        for _ in range(count):
            steps.meet(1, sum)

    with pytest.raises(SituateError, match="unequal numbers of batch norms"):
        steps.results([lambda count=count: run(count) for count in meetings])


@pytest.mark.parametrize("failing", range(3))
def test_the_error_of_a_slice_ends_all(failing):
    steps = lockstep()

    def run(s):
        steps.meet(s, sum)
        if s == failing:
            raise ValueError(f"slice {s}")
        steps.meet(s, sum)

    with pytest.raises(ValueError, match=f"slice {failing}"):
        steps.results([lambda s=s: run(s) for s in range(3)])


def test_threads_have_the_modes_of_the_caller():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func._schema.name)
            return func(*args, **(kwargs or {}))

    with Seeing():
        lockstep(2).results([lambda: torch.ones(2) + 1] * 2)
    assert seen.count("aten::add") == 2
