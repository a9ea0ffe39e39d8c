"""Perfetto: the schedule as a trace for https://ui.perfetto.dev."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.errors import MissingExtra, SituateError
from situate.files.atomic import write_bytes
from situate.report.computing_time import check_times
from situate.report.residency import residency
from situate.report.text import printable, tensor_name
from situate.schedule.schedule import Schedule

if TYPE_CHECKING:
    from perfetto.trace_builder.proto_builder import TraceProtoBuilder

SEQUENCE = 1
NANOSECONDS = {"s": 1e9, "": 1e6}
"""A unit of time of the graph, in the trace's: graphs without a unit show one as a millisecond."""


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write a trace: a track a device and a channel, flows along transfers, memory counters.

    Raises:
        MissingExtra: the perfetto package is not installed.
        SituateError: `path` cannot be written, or the step takes longer than a trace can say.
    """
    _check_clock(problem, schedule)
    write_bytes(path, _Trace(problem, schedule).serialized())


def write_beside(
    problem: Problem,
    schedule: Schedule,
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    path: str | Path,
) -> None:
    """Write a trace of two processes, `measured` and `predicted`, with one track a device.

    Args:
        start, end: (n,) measured seconds of each op; NaN for ops without measurement.

    Raises:
        MissingExtra, SituateError: as `write`.
    """
    _check_clock(problem, schedule)
    write_bytes(path, _Trace(problem, schedule).beside(start, end))


def _check_clock(problem: Problem, schedule: Schedule) -> None:
    check_times(schedule)
    if schedule.makespan * NANOSECONDS[problem.graph.unit] >= 2**63:
        raise SituateError(
            f"the step takes {schedule.makespan:g} {problem.graph.unit}, more nanoseconds than a "
            "trace can count"
        )


class _Trace:
    """A trace in the making."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.problem, self.schedule = problem, schedule
        self.scale = NANOSECONDS[problem.graph.unit]
        self.builder, self.kinds = _builder()
        self.tracks = 0

    def serialized(self) -> bytes:
        devices = self._track("devices")
        channels = self._track("channels")
        memory = self._track("memory")
        self._devices(devices, self.schedule.start, self.schedule.end, self._transfers_by_op())
        self._channels(channels)
        self._memory(memory)
        data: bytes = self.builder.serialize()
        return data

    def beside(self, start: NDArray[np.float64], end: NDArray[np.float64]) -> bytes:
        self._devices(self._process("measured"), start, end, {})
        predicted = self._process("predicted")
        self._devices(predicted, self.schedule.start, self.schedule.end, self._transfers_by_op())
        self._channels(predicted)
        self._memory(predicted)
        data: bytes = self.builder.serialize()
        return data

    def _transfers_by_op(self) -> dict[int, list[int]]:
        """By op, the transfers of its outputs."""
        transfers_of: dict[int, list[int]] = {}
        for k, tensor in enumerate(self.schedule.tensor.tolist()):
            transfers_of.setdefault(int(self.problem.producer[tensor]), []).append(k)
        return transfers_of

    def _devices(
        self,
        parent: int,
        start: NDArray[np.float64],
        end: NDArray[np.float64],
        transfers_of: dict[int, list[int]],
    ) -> None:
        for device, name in enumerate(self.problem.cluster.names):
            ops = np.flatnonzero((self.schedule.placement == device) & ~np.isnan(start))
            # Measured ops of one device may overlap, and a track shows nested slices only.
            for lane in _lanes(ops, start, end):
                track = self._track(name, parent)
                for op in lane:
                    self._op(track, op, float(start[op]), float(end[op]), transfers_of.get(op, []))

    def _op(self, track: int, op: int, start: float, end: float, transfers: list[int]) -> None:
        node = self.problem.graph.ops[op]
        details = {"kind": node.kind, "module": node.module, "phase": node.phase}
        self._slice(track, node.name, start, end, node.phase or "op", details, transfers)

    def _channels(self, parent: int) -> None:
        names = self.problem.cluster.names
        wire = self.problem.channel[self.schedule.source, self.schedule.target]
        for channel, name in enumerate(self.problem.cluster.channels):
            moves = np.flatnonzero(wire == channel)
            starts, ends = self.schedule.transfer_start, self.schedule.transfer_end
            for lane in _lanes(moves, starts, ends):
                track = self._track(name, parent)
                for k in lane:
                    tensor = int(self.schedule.tensor[k])
                    details = {
                        "from": names[int(self.schedule.source[k])],
                        "to": names[int(self.schedule.target[k])],
                        "bytes": str(int(self.problem.size[tensor])),
                    }
                    label = tensor_name(self.problem, tensor)
                    start, end = float(starts[k]), float(ends[k])
                    self._slice(track, label, start, end, "transfer", details, [k])

    def _memory(self, parent: int) -> None:
        memory = residency(self.problem, self.schedule)
        for device, name in enumerate(self.problem.cluster.names):
            track = self._counter(name, parent)
            instants, use = memory.use(device)
            times = memory.time(instants).tolist()
            for time, size in zip(times, use.tolist(), strict=True):
                event = self._event(time, track, self.kinds.TYPE_COUNTER)
                event.counter_value = size

    def _slice(
        self,
        track: int,
        name: str,
        start: float,
        end: float,
        category: str,
        details: dict[str, str],
        flows: list[int],
    ) -> None:
        begin = self._event(start, track, self.kinds.TYPE_SLICE_BEGIN)
        begin.name = printable(name)
        begin.categories.append(printable(category))
        begin.flow_ids.extend(k + 1 for k in flows)
        for key, value in details.items():
            if value:
                note = begin.debug_annotations.add()
                note.name, note.string_value = key, printable(value)
        # An end without a name closes the latest slice that is open on its track.
        self._event(end, track, self.kinds.TYPE_SLICE_END)

    def _event(self, time: float, track: int, kind: int) -> Any:
        packet = self.builder.add_packet()
        packet.timestamp = round(time * self.scale)
        # Track events without a sequence are dropped by Perfetto's importer.
        packet.trusted_packet_sequence_id = SEQUENCE
        packet.track_event.type = kind
        packet.track_event.track_uuid = track
        return packet.track_event

    def _track(self, name: str, parent: int = 0) -> int:
        self.tracks += 1
        descriptor = self.builder.add_packet().track_descriptor
        descriptor.uuid, descriptor.name = self.tracks, printable(name)
        if parent:
            descriptor.parent_uuid = parent
        return self.tracks

    def _process(self, name: str) -> int:
        self.tracks += 1
        descriptor = self.builder.add_packet().track_descriptor
        descriptor.uuid, descriptor.name = self.tracks, name
        descriptor.process.pid, descriptor.process.process_name = self.tracks, name
        return self.tracks

    def _counter(self, name: str, parent: int) -> int:
        self.tracks += 1
        descriptor = self.builder.add_packet().track_descriptor
        descriptor.uuid, descriptor.parent_uuid = self.tracks, parent
        descriptor.name = printable(name)
        descriptor.counter.unit = descriptor.counter.UNIT_SIZE_BYTES
        return self.tracks


def _builder() -> tuple[TraceProtoBuilder, Any]:
    try:
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
        from perfetto.trace_builder.proto_builder import TraceProtoBuilder
    except ImportError:
        raise MissingExtra("perfetto", "report") from None
    return TraceProtoBuilder(), TrackEvent


def _lanes(
    ops: NDArray[np.int64], start: NDArray[np.float64], end: NDArray[np.float64]
) -> list[list[int]]:
    """`ops` intervals in as few rows as hold no two that overlap; at least one row."""
    lanes: list[list[int]] = [[]]
    free = [0.0]
    for i in sorted(ops.tolist(), key=lambda i: (start[i], end[i])):
        lane = next((k for k, time in enumerate(free) if time <= start[i]), len(lanes))
        if lane == len(lanes):
            lanes.append([])
            free.append(0.0)
        lanes[lane].append(i)
        free[lane] = float(end[i])
    return lanes
