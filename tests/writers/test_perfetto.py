from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.errors import MissingExtra, ScheduleError, SituateError
from situate.schedule.schedule import Schedule
from situate.simulation.atomic import schedule_calls
from situate.writers.perfetto import write, write_beside
from tests.report.handmade import HOSTILE, chain, schedule

trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


def trace_of(problem: Problem, plan: Schedule, folder: Path) -> Any:
    write(problem, plan, folder / "plan.pftrace")
    trace = trace_pb2.Trace()
    trace.ParseFromString((folder / "plan.pftrace").read_bytes())
    return trace


def slices_of(trace: Any) -> dict[int, list[tuple[str, int, int]]]:
    """Name, start and end of the slices of each track; fails where they do not nest."""
    kinds = trace_pb2.TrackEvent
    opened: dict[int, list[tuple[str, int]]] = defaultdict(list)
    slices: dict[int, list[tuple[str, int, int]]] = defaultdict(list)
    for packet in trace.packet:
        if not packet.HasField("track_event"):
            continue
        event, track = packet.track_event, packet.track_event.track_uuid
        if event.type == kinds.TYPE_SLICE_BEGIN:
            opened[track].append((event.name, packet.timestamp))
        elif event.type == kinds.TYPE_SLICE_END:
            slices[track].append((*opened[track].pop(), packet.timestamp))
    assert not any(opened.values())
    return slices


def names_of(trace: Any) -> dict[int, str]:
    packets = (p.track_descriptor for p in trace.packet if p.HasField("track_descriptor"))
    return {descriptor.uuid: descriptor.name for descriptor in packets}


# Tracks, flows and counters on the trace's clock.
def test_devices_and_channels_are_tracks_in_nanoseconds(tmp_path: Path) -> None:
    problem = chain(3)
    trace = trace_of(problem, schedule(problem, [0, 1, 1]), tmp_path)
    names = names_of(trace)
    results = {names[track]: slices for track, slices in slices_of(trace).items()}
    assert results["gpu0"] == [("op0", 0, 10**9)]
    assert results["gpu1"] == [("op1", 2 * 10**9, 3 * 10**9), ("op2", 3 * 10**9, 4 * 10**9)]
    assert results["gpu0->gpu1"] == [("t:op0", 10**9, 2 * 10**9)]


def test_a_step_beyond_the_trace_clock_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    problem = Problem(Graph("ages", (Op("a", seconds={"*": 1e12}),)), Cluster.identical(1))
    with pytest.raises(SituateError, match="more nanoseconds than a trace can count"):
        write(problem, schedule(problem, [0]), tmp_path / "plan.pftrace")
    assert list(tmp_path.iterdir()) == []


def test_a_step_that_never_ends_is_an_error(tmp_path: Path) -> None:
    problem = chain(3, rules=RULES["dnn-partitioning"])
    waiting = schedule_calls(problem, np.array([0, 1, 0], np.int32))
    with pytest.raises(ScheduleError, match="never ends"):
        write(problem, waiting, tmp_path / "trace")


def test_a_flow_leads_from_the_op_to_its_transfer(tmp_path: Path) -> None:
    problem = chain(2)
    trace = trace_of(problem, schedule(problem, [0, 1]), tmp_path)
    events = [p.track_event for p in trace.packet if p.track_event.flow_ids]
    assert [event.name for event in events] == ["op0", "t:op0"]
    assert events[0].flow_ids == events[1].flow_ids


def test_memory_counts_bytes_over_time(tmp_path: Path) -> None:
    problem = chain(2)
    trace = trace_of(problem, schedule(problem, [0, 1]), tmp_path)
    counters: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for packet in trace.packet:
        if packet.track_event.type == trace_pb2.TrackEvent.TYPE_COUNTER:
            sample = packet.timestamp // 10**9, packet.track_event.counter_value
            counters[packet.track_event.track_uuid].append(sample)
    assert list(counters.values()) == [
        [(0, 111), (1, 110), (2, 10), (3, 0)],
        [(0, 10), (1, 110), (2, 111), (3, 0)],
    ]


# Overlapping and empty slices.
def test_what_overlaps_on_a_channel_gets_rows_of_its_own(tmp_path: Path) -> None:
    problem = chain(4, rules=RULES["doppler"])
    plan = schedule(problem, [0, 1, 0, 1])
    plan.transfer_start[:], plan.transfer_end[:] = 0.0, 1.0
    trace = trace_of(problem, plan, tmp_path)
    names = names_of(trace)
    rows = [track for track in slices_of(trace) if names[track] == "gpu0->gpu1"]
    assert len(rows) == 2


def test_ops_without_duration_keep_their_slices_apart(tmp_path: Path) -> None:
    problem = chain(3)
    plan = schedule(problem, [0, 0, 0])
    plan.start[:], plan.end[:] = [0, 1, 1], [1, 1, 2]
    tracks = slices_of(trace_of(problem, plan, tmp_path))
    assert [[name for name, *_ in slices] for slices in tracks.values()] == [["op0", "op1", "op2"]]


def test_measured_and_predicted_are_processes_side_by_side(tmp_path: Path) -> None:
    problem = chain(3)
    start, end = np.array([0.0, 1.0, np.nan]), np.array([1.0, 3.0, np.nan])
    plan = schedule(problem, [0, 1, 1])
    write_beside(problem, plan, start, end, tmp_path / "both.pftrace")
    trace = trace_pb2.Trace()
    trace.ParseFromString((tmp_path / "both.pftrace").read_bytes())
    tracks = [p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")]
    processes = {t.uuid: t.process.process_name for t in tracks if t.HasField("process")}
    assert list(processes.values()) == ["measured", "predicted"]
    where = {t.uuid: (processes[t.parent_uuid], t.name) for t in tracks if t.parent_uuid}
    results = {where[track]: slices for track, slices in slices_of(trace).items()}
    assert results["measured", "gpu0"] == [("op0", 0, 10**9)]
    assert results["measured", "gpu1"] == [("op1", 10**9, 3 * 10**9)]
    assert results["predicted", "gpu1"] == [
        ("op1", 2 * 10**9, 3 * 10**9),
        ("op2", 3 * 10**9, 4 * 10**9),
    ]
    assert results["predicted", "gpu0->gpu1"] == [("t:op0", 10**9, 2 * 10**9)]


# Hostile names and errors.
def test_hostile_names(tmp_path: Path) -> None:
    problem = chain(names=HOSTILE)
    trace = trace_of(problem, schedule(problem, [0] * 8), tmp_path)
    names = [name for slices in slices_of(trace).values() for name, *_ in slices]
    assert len(names) == 8
    assert not any("\x1b" in name or "\n" in name for name in names)


def test_without_perfetto_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "perfetto.trace_builder.proto_builder", None)
    with pytest.raises(MissingExtra, match=r"situate\[report\]"):
        write(chain(1), schedule(chain(1), [0]), tmp_path / "a")


def test_an_unwritable_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SituateError, match="cannot write"):
        write(chain(1), schedule(chain(1), [0]), tmp_path / "missing" / "a")
