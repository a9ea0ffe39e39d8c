"""Events of Chrome traces as spans on tracks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.errors import ReadError
from situate.readers.chrome_trace.events import decode, labels, spans, tracks
from tests.readers.traces import chrome_trace, event


def of(*events: dict) -> list:
    """The spans, by their names' first appearance."""
    return spans(decode(chrome_trace(*events)))[0]


def owns(*events: dict) -> dict[str, float]:
    found = of(*events)
    tracks(found)
    return {span.name: span.own for span in found}


def test_an_array_that_lacks_its_end_is_a_trace_too():
    events = [event("a", 0, 1), event("b", 1, 1)]
    whole = json.dumps(events).encode()
    for data in (whole, whole[:-1], whole[:-1] + b",\n"):
        assert [e.name for e in decode(data)] == ["a", "b"]


def test_a_beginning_and_an_end_are_one_span():
    ends = [{"ph": p, "name": "a", "pid": 1, "tid": "x", "ts": t} for p, t in (("B", 3), ("E", 8))]
    (span,) = of(*ends)
    assert (span.name, span.start, span.end, span.track) == ("a", 3, 8, (1, "x"))


def test_an_end_closes_the_latest_beginning_of_its_track():
    begin_outer, begin_inner = ({"ph": "B", "name": n, "ts": t} for n, t in (("o", 0), ("i", 1)))
    other = {"ph": "B", "name": "other", "tid": 9, "ts": 1}
    ends = [{"ph": "E", "ts": 2}, {"ph": "E", "ts": 5}, {"ph": "E", "tid": 9, "ts": 7}]
    found = of(begin_outer, begin_inner, other, *ends)
    assert {span.name: span.end for span in found} == {"i": 2, "o": 5, "other": 7}


def test_what_has_no_partner_is_counted():
    _, unmatched = spans(decode(chrome_trace({"ph": "E", "ts": 1}, {"ph": "B", "ts": 2})))
    assert unmatched == 2


def test_every_microsecond_of_a_track_belongs_to_the_innermost_span():
    events = event("a", 0, 10), event("b", 1, 4), event("c", 2, 1), event("d", 6, 2)
    assert owns(*events) == {"a": 4, "b": 3, "c": 1, "d": 2}


def test_of_two_that_begin_together_the_shorter_is_inside():
    assert owns(event("inner", 0, 4), event("outer", 0, 10)) == {"inner": 4, "outer": 6}


def test_spans_that_overlap_count_the_overlap_once():
    assert owns(event("a", 0, 10), event("b", 8, 10)) == {"a": 8, "b": 10}


def test_one_that_outlives_the_one_it_began_in_takes_time_from_those_around_both():
    events = event("a", 0, 100), event("b", 10, 10), event("c", 15, 15), event("d", 40, 1)
    assert owns(*events) == {"a": 79, "b": 5, "c": 15, "d": 1}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), min_size=1, max_size=12))
def test_every_microsecond_counts_once(stretches):
    events = [event(str(i), start, length) for i, (start, length) in enumerate(stretches)]
    busy = {at for start, length in stretches for at in range(start, start + length)}
    assert sum(owns(*events).values()) == len(busy)


def test_spans_of_other_tracks_are_not_inside():
    assert owns(event("a", 0, 10), event("b", 1, 4, tid=8)) == {"a": 10, "b": 4}


def test_a_track_has_the_names_that_the_file_gives_it():
    named = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "loader"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 3, "args": {"name": 5}},
    ]
    found = labels(decode(chrome_trace(*named, event("a", 0, 1, pid=4, tid="t"))))
    assert found[1, 2] == "python/loader"
    assert found[1, 3] == "python/3"
    assert found[4, "t"] == "4/t"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ts": None}, r"traceEvents\[1\].ts: must be a finite number of microseconds, got None"),
        ({"dur": -1}, r"traceEvents\[1\].dur: must be finite and not negative, got -1"),
        ({"ts": 1e308, "dur": 1e308}, r"traceEvents\[1\].dur: ends after any time there is"),
        ({"dur": "5"}, r"traceEvents\[1\].dur: expected float, got str"),
        ({"ph": 3}, r"traceEvents\[1\].ph: expected str, got int"),
        ({"tid": [1]}, r"traceEvents\[1\].tid: expected int"),
    ],
)
def test_a_bad_event_is_named(changed, message):
    with pytest.raises(ReadError, match=message):
        decode(chrome_trace(event("a", 0, 1), {**event("b", 0, 1), **changed}))


@pytest.mark.parametrize("number", ["NaN", "1e999", "Infinity"])
def test_no_number_is_beyond_all_numbers(number):
    data = chrome_trace(event("a", 0, 1)).replace(b'"dur": 1', f'"dur": {number}'.encode())
    with pytest.raises(ReadError):
        decode(data)
