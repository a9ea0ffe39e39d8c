"""The events of a Chrome trace, as spans of time on tracks. See docs/formats/chrome-trace.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import msgspec

from situate.errors import ReadError
from situate.files import strict_json

MICROSECONDS = 1_000_000

LONGEST = Decimal("1e300")
"""Microseconds; sums of a few are below the largest float."""

Track = tuple[int | str, int | str]
"""Process and thread."""

TIMED = frozenset("XBEstf")
"""Phases of the events that are read: spans, and the flows between them."""


class Event(msgspec.Struct, frozen=True):
    """An event of the file. Times are exact microseconds with any number of digits.

    Numbers may be in quotes, because torch_npu quotes all of them.
    """

    phase: str = msgspec.field(name="ph")
    name: str = ""
    category: str = msgspec.field(name="cat", default="")
    start: Decimal | None = msgspec.field(name="ts", default=None)
    duration: Decimal = msgspec.field(name="dur", default=Decimal())
    process: int | str = msgspec.field(name="pid", default=0)
    thread: int | str = msgspec.field(name="tid", default=0)
    id: int | str = 0
    bind: str = msgspec.field(name="bp", default="")
    args: msgspec.Raw = msgspec.Raw(b"{}")

    @property
    def track(self) -> Track:
        """Process and thread. Quoted numbers count as numbers: PyTorch 1.8 quotes only spans'."""
        return _number(self.process), _number(self.thread)

    @property
    def time(self) -> float:
        """Microseconds from the start of the trace to its own, which `decode` has checked."""
        return float(self.start or 0)

    @property
    def end(self) -> float:
        """Microseconds from the start of the trace to its end; not before its start."""
        start = self.start or Decimal()
        return float(start + self.duration if self.duration > 0 else start)


def _number(word: int | str) -> int | str:
    return int(word) if isinstance(word, str) and re.fullmatch(r"[0-9]{1,18}", word) else word


class _File(msgspec.Struct, frozen=True):
    events: list[Event] = msgspec.field(name="traceEvents")


@dataclass(eq=False, slots=True)
class Span:
    """A stretch of time on a track."""

    name: str
    category: str
    track: Track
    start: float
    """Microseconds since the earliest event of the file; `end` and `own` are microseconds too."""
    end: float
    number: int
    """Its index among the events of the file."""
    args: msgspec.Raw
    own: float = 0.0
    """Its time without the spans of its track that run inside it."""
    parent: Span | None = None


def decode(data: bytes) -> list[Event]:
    """All events of a JSON object with `traceEvents`, or of an array that may lack its end.

    The earliest event starts at 0.

    Raises:
        ReadError: names the event that is not as it should be.
    """
    if re.match(rb"(\xef\xbb\xbf)?\s*\[", data):
        # A profiler that is killed leaves an array without its end, and the format allows that.
        body = data.rstrip()
        whole = body if body.endswith(b"]") else body.removesuffix(b",") + b"]"
        events = strict_json.decode(whole, list[Event], unique=False)
    else:
        events = strict_json.decode(data, _File, unique=False).events
    return _from_zero(events)


def _from_zero(events: Sequence[Event]) -> list[Event]:
    """The events, timed from the earliest of them.

    As microseconds since 1970, a 64-bit float resolves only quarters of a microsecond.
    """
    starts = {i: _start(event, i) for i, event in enumerate(events) if event.phase in TIMED}
    first = min(starts.values(), default=Decimal())
    moved = list(events)
    for i, start in starts.items():
        moved[i] = msgspec.structs.replace(events[i], start=start - first)
    return moved


def _start(event: Event, number: int) -> Decimal:
    """The start of an event whose numbers are checked."""
    _check(event.duration, f"traceEvents[{number}].dur")
    return _check(event.start, f"traceEvents[{number}].ts")


def _check(time: Decimal | None, where: str) -> Decimal:
    if time is None or not time.is_finite() or abs(time) > LONGEST:
        raise ReadError(
            f"{where}: must be a finite number of microseconds, at most {LONGEST}, got {time}"
        )
    return time


class _Label(msgspec.Struct, frozen=True):
    name: str = ""


def labels(events: Iterable[Event]) -> dict[Track, str]:
    """Labels of the tracks: the names that the file gives process and thread, else their
    numbers."""
    processes: dict[int | str, str] = {}
    threads: dict[Track, str] = {}
    all_tracks = dict[Track, None]()
    for event in events:
        all_tracks[event.track] = None
        if event.phase == "M" and event.name == "process_name":
            processes[event.track[0]] = _label(event)
        elif event.phase == "M" and event.name == "thread_name":
            threads[event.track] = _label(event)
    return {
        (process, thread): f"{processes.get(process) or process}/"
        f"{threads.get((process, thread)) or thread}"
        for process, thread in all_tracks
    }


def _label(event: Event) -> str:
    """The name in the event; empty without one."""
    try:
        return msgspec.json.decode(event.args, type=_Label).name
    except (msgspec.MsgspecError, RecursionError):
        return ""


class Spans(NamedTuple):
    """The spans of a trace.

    Attributes:
        spans: all of them.
        unmatched: beginnings and ends that have no partner.
        negative: numbers of the events whose end is before their start; they take no time.
    """

    spans: list[Span]
    unmatched: int
    negative: list[int]

    def warnings(self) -> Iterator[str]:
        """A line for each oddity."""
        if self.unmatched:
            yield f"events without their beginning or end are left out: {self.unmatched}"
        if self.negative:
            count, first = len(self.negative), min(self.negative)
            yield f"events of negative duration take no time: {count}, first traceEvents[{first}]"


def spans(events: Sequence[Event]) -> Spans:
    """All spans of the events."""
    complete: list[Span] = []
    open_: dict[Track, list[tuple[int, Event]]] = {}
    negative: list[int] = []
    unmatched = 0
    for number, event in enumerate(events):
        if event.phase == "X":
            negative += [number] * (event.duration < 0)
            complete.append(_span(event, number, event.end))
        elif event.phase == "B":
            open_.setdefault(event.track, []).append((number, event))
        elif event.phase == "E" and open_.get(event.track):
            # By the format, an end closes the innermost open span of its thread.
            first, begin = open_[event.track].pop()
            negative += [first] * (event.time < begin.time)
            complete.append(_span(begin, first, max(begin.time, event.time)))
        elif event.phase == "E":
            unmatched += 1
    return Spans(complete, unmatched + sum(map(len, open_.values())), negative)


def _span(event: Event, number: int, end: float) -> Span:
    name = event.name or event.category or "event"
    return Span(name, event.category, event.track, event.time, end, number, event.args)


def tracks(spans: Iterable[Span]) -> dict[Track, list[Span]]:
    """The spans of every track by their start, outer before inner, with `own` and `parent` set."""
    by_track: dict[Track, list[Span]] = {}
    # Longer spans first: of spans with a common start, the outer one is the longer.
    for span in sorted(spans, key=lambda span: (span.start, -span.end, span.number)):
        by_track.setdefault(span.track, []).append(span)
    for track in by_track.values():
        _nest(track)
    return by_track


def _nest(track: Sequence[Span]) -> None:
    """Set `own` and `parent`; the overlap of spans that are not nested belongs to the later one."""
    open_: list[Span] = []
    for span in track:
        while open_ and open_[-1].end <= span.start:
            open_.pop()
        span.own = span.end - span.start
        span.parent = open_[-1] if open_ else None
        _take_from(open_, span)
        open_.append(span)


def _take_from(open_: list[Span], span: Span) -> None:
    """Subtract the span's time from the spans around it, innermost first; close those that end."""
    segment_start = span.start
    while open_ and segment_start < span.end:
        outer = open_[-1]
        segment_end = min(span.end, outer.end)
        outer.own = max(0.0, outer.own - (segment_end - segment_start))
        segment_start = segment_end
        if outer.end <= span.end:
            open_.pop()
