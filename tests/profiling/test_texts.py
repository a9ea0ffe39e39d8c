"""The source that the processes execute."""

from __future__ import annotations

import time
from typing import Any

from situate.profiling.pairs import round_trips
from situate.profiling.texts import MANY, Marks, clock, plain, seconds_of_many
from situate.runtime.device import Ran


def _executed(text: str, **names: Any) -> dict[str, Any]:
    names |= {"began": {}, "ended": {}, "now": time.perf_counter}
    exec(compile(text, "step", "exec"), names)
    names["step"]()
    return names


def test_only_one_thread_is_timed_by_its_own_clock() -> None:
    assert clock(1) == "thread_time"
    assert clock(2) == clock(None) == "perf_counter"


def test_the_plain_step_times_trips_launches_and_looks_behind_the_ops() -> None:
    trips, calls = round_trips(2), []
    marks = Marks(ops=10, trips=len(trips))
    channels = {f"send{k}": lambda v: None for k in range(2 * len(trips))}
    channels |= {f"take{k}": lambda: None for k in range(2 * len(trips))}
    text = plain(trips, 0, 3, marks, "thread_time")
    names = _executed(text, f3=lambda size: calls.append(size), **channels)
    assert sorted(names["ended"]) == list(range(10, 10 + len(trips) + 2))
    assert calls.count([1]) == MANY
    assert names["ended"].keys() == names["began"].keys()


def test_many_things_share_their_time() -> None:
    laps = [{0: Ran(0.0, 0.0, 0.0, {5: 1.0}, {5: 1.0 + s})} for s in (0.1, 0.2, 9.0, 0.3)]
    assert abs(seconds_of_many(laps, 0, 5) - 0.2 / MANY) < 1e-9
