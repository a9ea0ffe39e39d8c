"""Arrows between the spans of a Chrome trace."""

from __future__ import annotations

from situate.readers.chrome_trace.events import decode, spans, tracks
from situate.readers.chrome_trace.flows import arrows
from tests.readers.traces import chrome_trace, event

HERE = [event("outer", 0, 20), event("inner", 5, 5)]
THERE = [event("early", 0, 5, tid=8), event("late", 30, 5, tid=8)]


def flow(phase: str, at: float, thread: int, **more: object) -> dict:
    return {
        "ph": phase,
        "ts": at,
        "pid": 7,
        "tid": thread,
        "id": 1,
        "cat": "c",
        "name": "f",
        **more,
    }


def pairs(*flows: dict) -> list[tuple[str, str]]:
    events = decode(chrome_trace(*HERE, *THERE, *flows))
    by_track = tracks(spans(events).spans)
    return [(before.name, after.name) for before, after in arrows(events, by_track)]


def test_a_flow_leaves_the_innermost_span_and_ends_in_the_next():
    assert pairs(flow("s", 6, 7), flow("f", 25, 8)) == [("inner", "late")]
    assert pairs(flow("s", 12, 7), flow("f", 25, 8)) == [("outer", "late")]


def test_a_flow_may_end_in_the_span_around_it():
    assert pairs(flow("s", 6, 7), flow("f", 32, 8, bp="e")) == [("inner", "late")]
    assert pairs(flow("s", 6, 7), flow("f", 25, 8, bp="e")) == []


def test_the_order_in_the_file_is_no_matter():
    assert pairs(flow("f", 25, 8), flow("s", 6, 7)) == [("inner", "late")]


def test_a_flow_passes_through_spans():
    steps = flow("s", 1, 7), flow("t", 6, 7), flow("f", 25, 8)
    assert pairs(*steps) == [("outer", "inner"), ("inner", "late")]


def test_flows_of_another_category_or_number_are_others():
    assert pairs(flow("s", 6, 7), flow("f", 25, 8, id=2)) == []
    assert pairs(flow("s", 6, 7), flow("f", 25, 8, cat="d")) == []


def test_what_lacks_a_span_or_a_beginning_is_left_out():
    assert pairs(flow("f", 25, 8)) == []
    assert pairs(flow("s", 25, 7), flow("f", 25, 8)) == []
    assert pairs(flow("s", 6, 7), flow("f", 40, 8)) == []
    assert pairs(flow("s", 6, 3), flow("f", 25, 8)) == []
    assert pairs(flow("s", 6, 7), flow("f", 7, 7, bp="e")) == []
