"""Chrome's trace events, which Perfetto, Kineto and many profilers write.
See docs/formats/chrome-trace.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from situate.data.graph import Graph, Op
from situate.errors import ReadError
from situate.files.strict_json import Keys
from situate.readers import kineto
from situate.readers.chrome_trace.events import (
    MICROSECONDS,
    Span,
    Track,
    decode,
    labels,
    spans,
    tracks,
)
from situate.readers.chrome_trace.flows import arrows
from situate.readers.names import unique

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
