"""Chrome's trace events, which Perfetto, Kineto and many profilers write.
See docs/formats/chrome-trace.md."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from situate.data.graph import Graph, Op
from situate.errors import ReadError
from situate.files.strict_json import Keys
from situate.readers import kineto
from situate.readers.chrome_trace.events import (
    MICROSECONDS,
    Event,
    Span,
    Track,
    decode,
    labels,
    spans,
    tracks,
)
from situate.readers.dataflow import unique


# The flow events of a Chrome trace: arrows from one span to another.
def arrows(
    events: Sequence[Event], tracks: Mapping[Track, Sequence[Span]]
) -> Iterator[tuple[Span, Span]]:
    """Pairs (before, after) of different spans that a flow connects.

    A flow leaves (`s`) and passes (`t`) the innermost span around it and ends (`f`) in the next
    span of its track that begins, or with `bp` `e` in the one around it. Ends without a span there,
    or without a beginning, are left out.
    """
    starts = {track: [span.start for span in spans] for track, spans in tracks.items()}
    under_way: dict[tuple[str, str, int | str], Span] = {}
    for event in sorted((e for e in events if e.phase in "stf"), key=_in_time):
        key = event.category, event.name, event.id
        before = under_way.pop(key, None) if event.phase != "s" else None
        span = _span_of(event, tracks.get(event.track, ()), starts.get(event.track, []))
        if before is not None and span is not None and span is not before:
            yield before, span
        if span is not None and (event.phase == "s" or (event.phase == "t" and before)):
            under_way[key] = span


def _in_time(event: Event) -> tuple[float, int]:
    """At one instant a flow begins before it goes on, and goes on before it ends."""
    return event.time, "stf".index(event.phase)


def _span_of(event: Event, spans: Sequence[Span], starts: Sequence[float]) -> Span | None:
    """The span of an event's track that it belongs to, of spans in the order of their starts."""
    if event.phase == "f" and event.bind != "e":
        place = bisect_left(starts, event.time)
        return spans[place] if place < len(spans) else None
    place = bisect_right(starts, event.time)
    span = spans[place - 1] if place else None
    while span is not None and span.end < event.time:
        span = span.parent
    return span


_ARRAY = re.compile(rb'(\xef\xbb\xbf)?\s*\[\s*\{[^\[\]]{0,4096}?"ph"\s*:')


def recognises(data: bytes, keys: Keys) -> bool:
    """True if the content is a JSON object with `traceEvents`, or an array of events."""
    return bool(_ARRAY.match(data[:8192])) or "traceEvents" in keys


def read(data: bytes, name: str) -> Graph:
    """The graph: an op per span of time, in the order of its track, and the flows between them.

    An op takes its span's time without the spans inside it, so that every microsecond of a track
    counts once.

    Raises:
        ReadError: an event that is not as it should be, or no event that takes time.
        GraphError: the graph breaks its own rules.
    """
    events = decode(data)
    read_spans = spans(events)
    timed = read_spans.spans
    if kineto.is_kineto(timed):
        timed = kineto.work(timed)
    if not timed:
        raise ReadError("has no events that take time: ph X, or B and E")
    by_track = tracks(timed)
    ordered = sorted(timed, key=kineto.place)
    index = {span.number: j for j, span in enumerate(ordered)}
    flows = [(index[a.number], index[b.number]) for a, b in arrows(events, by_track)]
    # A graph has no cycles, so flows against the order of spans are left out, with a warning.
    edges = [edge for edge in (*_edges(by_track, index), *flows) if edge[0] < edge[1]]
    names = unique(span.name for span in ordered)
    label = labels(events)
    return Graph(
        name=name,
        ops=tuple(
            _op(span, op, label[span.track]) for span, op in zip(ordered, names, strict=True)
        ),
        control=tuple(dict.fromkeys(edges)),
        source="chrome-trace",
        warnings=(*read_spans.warnings(), *_warnings(sum(a > b for a, b in flows))),
    )


def _op(span: Span, name: str, track: str) -> Op:
    return Op(
        name,
        kind=_kind(span),
        seconds={"accelerator" if kineto.on_gpu(span) else "*": kineto.busy(span) / MICROSECONDS},
        module=track,
    )


def _kind(span: Span) -> str:
    """The span's PyTorch operator, else its category."""
    if kineto.category(span) == "cpu_op" and "::" in span.name:
        return span.name.replace("::", ".")
    return kineto.EARLIER.get(span.category.lower(), span.category) or "op"


def _edges(
    by_track: Mapping[Track, Sequence[Span]], index: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    """Edges from each span to the next on its track, and to synchronisations that wait for it."""
    for track in by_track.values():
        order = sorted(index[span.number] for span in track)
        yield from pairwise(order)
    for before, after in kineto.waits(by_track):
        yield index[before.number], index[after.number]


def _warnings(backward: int) -> Iterator[str]:
    if backward:
        yield f"flows that arrive before they leave are left out: {backward}"
