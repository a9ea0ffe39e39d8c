"""The flow events of a Chrome trace: arrows from one span to another."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence

from situate.readers.chrome_trace.events import Event, Span, Track


def arrows(
    events: Sequence[Event], tracks: Mapping[Track, Sequence[Span]]
) -> Iterator[tuple[Span, Span]]:
    """Pairs (before, after) of different spans that a flow connects.

    A flow leaves (`s`) and passes (`t`) the innermost span around it and ends (`f`) in the next
    span of its track that begins, or with `bp` `e` in the one around it. What has no span there,
    or no beginning, is left out.
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
