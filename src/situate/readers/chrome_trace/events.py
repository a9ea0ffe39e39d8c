"""The events of a Chrome trace, as spans of time on tracks. See docs/formats/chrome-trace.md."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from situate.errors import ReadError
from situate.files import strict_json

MICROSECONDS = 1_000_000

Track = tuple[int | str, int | str]
"""Process and thread."""

TIMED = frozenset("XBEstf")
"""Phases of the events that are read: spans, and the flows between them."""


class Event(msgspec.Struct, frozen=True):
    """An event as it stands in the file; times are microseconds."""

    phase: str = msgspec.field(name="ph")
    name: str = ""
    category: str = msgspec.field(name="cat", default="")
    start: float | None = msgspec.field(name="ts", default=None)
    duration: float = msgspec.field(name="dur", default=0.0)
    process: int | str = msgspec.field(name="pid", default=0)
    thread: int | str = msgspec.field(name="tid", default=0)
    id: int | str = 0
    bind: str = msgspec.field(name="bp", default="")
    args: msgspec.Raw = msgspec.Raw(b"{}")

    @property
    def track(self) -> Track:
        """Numbers are numbers whether in quotes or not: PyTorch 1.8 quoted those of spans only."""
        return _number(self.process), _number(self.thread)

    @property
    def time(self) -> float:
        """Its `start`, which `decode` has seen to be there."""
        return self.start or 0.0


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
    """Microseconds, as `end` and `own`."""
    end: float
    number: int
    """Its place among the events of the file."""
    args: msgspec.Raw
    own: float = 0.0
    """The part of its time in which no other span of its track runs inside it."""
    parent: Span | None = None


def decode(data: bytes) -> list[Event]:
    """All events, of a JSON object with `traceEvents` or of an array that may lack its end.

    Raises:
        ReadError: names the event that is not as it should be.
    """
    if re.match(rb"(\xef\xbb\xbf)?\s*\[", data):
        body = data.rstrip()
        whole = body if body.endswith(b"]") else body.removesuffix(b",") + b"]"
        events = strict_json.decode(whole, list[Event], unique=False)
    else:
        events = strict_json.decode(data, _File, unique=False).events
    for number, event in enumerate(events):
        if event.phase in TIMED:
            _check(event, f"traceEvents[{number}]")
    return events


def _check(event: Event, where: str) -> None:
    if event.start is None or not math.isfinite(event.start):
        raise ReadError(f"{where}.ts: must be a finite number of microseconds, got {event.start}")
    if not (math.isfinite(event.duration) and event.duration >= 0):
        raise ReadError(f"{where}.dur: must be finite and not negative, got {event.duration}")
    if not math.isfinite(event.start + event.duration):
        raise ReadError(f"{where}.dur: ends after any time there is")


class _Label(msgspec.Struct, frozen=True):
    name: str = ""


def labels(events: Iterable[Event]) -> dict[Track, str]:
    """Labels of the tracks: the names that the file gives process and thread, else their
    numbers."""
    processes: dict[int | str, str] = {}
    threads: dict[Track, str] = {}
    seen = dict[Track, None]()
    for event in events:
        seen[event.track] = None
        if event.phase == "M" and event.name == "process_name":
            processes[event.track[0]] = _label(event)
        elif event.phase == "M" and event.name == "thread_name":
            threads[event.track] = _label(event)
    return {
        (process, thread): f"{processes.get(process) or process}/"
        f"{threads.get((process, thread)) or thread}"
        for process, thread in seen
    }


def _label(event: Event) -> str:
    """Empty where the event names nothing."""
    try:
        return msgspec.json.decode(event.args, type=_Label).name
    except (msgspec.MsgspecError, RecursionError):
        return ""


def spans(events: Sequence[Event]) -> tuple[list[Span], int]:
    """All spans, and how many beginnings and ends have no partner."""
    found: list[Span] = []
    open_: dict[Track, list[tuple[int, Event]]] = {}
    unmatched = 0
    for number, event in enumerate(events):
        if event.phase == "X":
            found.append(_span(event, number, event.time + event.duration))
        elif event.phase == "B":
            open_.setdefault(event.track, []).append((number, event))
        elif event.phase == "E" and open_.get(event.track):
            first, begin = open_[event.track].pop()
            found.append(_span(begin, first, max(begin.time, event.time)))
        elif event.phase == "E":
            unmatched += 1
    return found, unmatched + sum(map(len, open_.values()))


def _span(event: Event, number: int, end: float) -> Span:
    name = event.name or event.category or "event"
    return Span(name, event.category, event.track, event.time, end, number, event.args)


def tracks(spans: Iterable[Span]) -> dict[Track, list[Span]]:
    """The spans of every track by their start, outer before inner, with `own` and `parent` set."""
    found: dict[Track, list[Span]] = {}
    for span in sorted(spans, key=lambda span: (span.start, -span.end, span.number)):
        found.setdefault(span.track, []).append(span)
    for track in found.values():
        _nest(track)
    return found


def _nest(track: Sequence[Span]) -> None:
    """Where spans overlap without one being inside the other, the later one has the overlap."""
    open_: list[Span] = []
    for span in track:
        while open_ and open_[-1].end <= span.start:
            open_.pop()
        span.own = span.end - span.start
        span.parent = open_[-1] if open_ else None
        _take_from(open_, span)
        open_.append(span)


def _take_from(open_: list[Span], span: Span) -> None:
    """Take its time from those around it, the innermost first, and close those that end in it."""
    taken = span.start
    while open_ and taken < span.end:
        outer = open_[-1]
        until = min(span.end, outer.end)
        outer.own = max(0.0, outer.own - (until - taken))
        taken = until
        if outer.end <= span.end:
            open_.pop()
