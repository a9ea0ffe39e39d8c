"""A schedule as columns."""

from __future__ import annotations

import numpy as np
import pytest

from situate.report.pictures.op_colors import op_classes
from situate.report.residency import residency
from situate.report.view import plan_columns as columns_of
from situate.report.view.bars import bars_of
from situate.report.view.block import encoded
from situate.report.view.plan_columns import SMALL, plan_columns
from tests.report.handmade import chain, schedule
from tests.report.view.unpack import decoded


def _columns(count: int, placement: list[int], limit: int = 1000) -> tuple[dict, object, object]:
    problem = chain(count)
    step = schedule(problem, placement)
    bars = bars_of(problem, step, op_classes(problem.graph.ops, np.ones(count)).of, limit)
    return decoded(encoded(plan_columns(problem, step, bars))), problem, step


def _peaks(memory: dict, devices: int) -> list[float]:
    """The largest sum of intervals on each device."""
    peaks = []
    for device in range(devices):
        here = memory["device"] == device
        change = np.zeros(len(memory["clock"]) + 1)
        np.add.at(change, memory["start"][here], memory["size"][here])
        np.add.at(change, memory["end"][here], -memory["size"][here])
        peaks.append(float(np.cumsum(change).max()))
    return peaks


def test_devices_have_their_figures() -> None:
    columns, _, step = _columns(4, [0, 0, 1, 1])
    first = columns["devices"][0]
    assert (first["name"], first["ops"], first["busy"], first["limit"]) == ("gpu0", 2, 2.0, 1000)
    assert (first["peak"], first["held"]) == (step.peak[0], 20.0)


def test_the_order_of_bars_is_by_device_and_then_by_start() -> None:
    columns, _, _ = _columns(4, [1, 0, 1, 0])
    assert columns["ops"]["order"].tolist() == [1, 3, 0, 2]


def test_transfers_and_links_have_bytes_and_seconds() -> None:
    columns, _, _ = _columns(4, [0, 0, 1, 1])
    assert columns["transfers"]["tensor"].tolist() == [1]
    links = columns["links"]
    assert (links["source"].tolist(), links["target"].tolist()) == ([0], [1])
    assert (links["bytes"].tolist(), links["seconds"].tolist()) == ([100.0], [1.0])


def test_a_plan_on_one_device_has_no_links() -> None:
    columns, _, _ = _columns(2, [0, 0])
    assert all(len(values) == 0 for values in columns["links"].values())


# Memory: intervals add up to the peaks of the schedule.
def test_intervals_add_up_to_the_peaks() -> None:
    columns, _, step = _columns(6, [0, 0, 1, 1, 0, 0])
    assert _peaks(columns["memory"], 2) == step.peak.tolist()


def test_small_intervals_are_added_up_and_peaks_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_of, "MAX_INTERVALS", 5)
    columns, problem, step = _columns(6, [0, 0, 1, 1, 0, 0])
    memory = columns["memory"]
    assert memory["omitted"] == len(residency(problem, step).size) - 5
    assert (memory["kind"] == SMALL).any()
    assert all(np.array(_peaks(memory, 2)) >= step.peak)


def test_bars_of_several_ops_keep_the_critical_path_in_range() -> None:
    columns, _, step = _columns(90, [0] * 45 + [1] * 45, limit=9)
    bars, transfers = len(columns["ops"]["start"]), len(columns["transfers"]["tensor"])
    assert bars < 90
    assert columns["path"]["item"].max() < bars + transfers
    assert columns["path"]["end"][-1] == step.makespan
    assert columns["memory"]["index"].max() < 90
