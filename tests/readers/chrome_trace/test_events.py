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
    return spans(decode(chrome_trace(*events))).spans


def owns(*events: dict) -> dict[str, float]:
    result = of(*events)
    tracks(result)
    return {span.name: span.own for span in result}


# Events of the file become spans.
def test_an_array_that_lacks_its_end_is_a_trace_too():
    events = [event("a", 0, 1), event("b", 1, 1)]
    whole = json.dumps(events).encode()
    for data in (whole, whole[:-1], whole[:-1] + b",\n"):
        assert [e.name for e in decode(data)] == ["a", "b"]


def test_a_beginning_and_an_end_are_one_span():
    ends = [{"ph": p, "name": "a", "pid": 1, "tid": "x", "ts": t} for p, t in (("B", 3), ("E", 8))]
    (span,) = of(*ends)
    assert (span.name, span.start, span.end, span.track) == ("a", 0, 5, (1, "x"))


def test_an_end_closes_the_latest_beginning_of_its_track():
    begin_outer, begin_inner = ({"ph": "B", "name": n, "ts": t} for n, t in (("o", 0), ("i", 1)))
    other = {"ph": "B", "name": "other", "tid": 9, "ts": 1}
    ends = [{"ph": "E", "ts": 2}, {"ph": "E", "ts": 5}, {"ph": "E", "tid": 9, "ts": 7}]
    result = of(begin_outer, begin_inner, other, *ends)
    assert {span.name: span.end for span in result} == {"i": 2, "o": 5, "other": 7}


def test_times_are_counted_from_the_earliest_event():
    begin, end = ({"ph": phase, "name": "a", "ts": at} for phase, at in (("B", 7), ("E", 9)))
    assert [(span.start, span.end) for span in of(begin, end, event("b", 5, 3))] == [(2, 4), (0, 3)]


def test_what_has_no_partner_is_counted():
    trace = spans(decode(chrome_trace({"ph": "E", "ts": 1}, {"ph": "B", "ts": 2})))
    assert trace.unmatched == 2
    assert list(trace.warnings()) == ["events without their beginning or end are left out: 2"]


def test_numbers_in_quotes_are_numbers():
    """As the profiler of torch_npu writes all of them."""
    quoted = [event("a", "1669329643132548.5", "10.25"), event("b", "1669329643132560", "5")]
    assert [(span.start, span.end) for span in of(*quoted)] == [(0, 10.25), (11.5, 16.5)]


@pytest.mark.parametrize("quote", ["", '"'])
def test_every_digit_of_a_time_counts(quote):
    """A float of 64 bits has quarters of a microsecond in 2022, and steps of 256 in nanoseconds."""
    texts = [("1669329643132548.123", "1.001"), ("1669329643132549.124", "18014398509481985")]
    data = chrome_trace(*(event(f"op{i}", 10 + i, 20 + i) for i in range(2)))
    for i, (start, duration) in enumerate(texts):
        data = data.replace(b'"ts": %d' % (10 + i), f'"ts": {quote}{start}{quote}'.encode())
        data = data.replace(b'"dur": %d' % (20 + i), f'"dur": {quote}{duration}{quote}'.encode())
    first, second = spans(decode(data)).spans
    assert (first.start, first.end, second.start) == (0, 1.001, 1.001)
    assert second.end == float("18014398509481986.001")


def test_a_negative_duration_is_none_and_is_named():
    """As PyTorch's profiler of 2022 wrote some."""
    ends = [{"ph": phase, "name": "c", "tid": 2, "ts": at} for phase, at in (("B", 9), ("E", 8))]
    trace = spans(decode(chrome_trace(event("a", 0, 50), event("b", 60, -30), *ends)))
    assert {span.name: span.end - span.start for span in trace.spans} == {"a": 50, "b": 0, "c": 0}
    warning = "events of negative duration take no time: 2, first traceEvents[1]"
    assert list(trace.warnings()) == [warning]


# Every microsecond of a track belongs to the innermost span.
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


# Names of tracks, and events that are broken.
def test_a_track_has_the_names_that_the_file_gives_it():
    names = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "loader"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 3, "args": {"name": 5}},
    ]
    result = labels(decode(chrome_trace(*names, event("a", 0, 1, pid=4, tid="t"))))
    assert result[1, 2] == "python/loader"
    assert result[1, 3] == "python/3"
    assert result[4, "t"] == "4/t"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"ts": None},
            r"traceEvents\[1\].ts: must be a finite number of micro.*, got None",
        ),
        (
            {"ts": "NaN"},
            r"traceEvents\[1\].ts: must be a finite number of micro.*, got NaN",
        ),
        ({"dur": "sNaN"}, r"traceEvents\[1\].dur: must be a finite number of micro.*, got sNaN"),
        ({"dur": "-Infinity"}, r"traceEvents\[1\].dur: must be a finite number of micro.*ity"),
        ({"ts": "1e999"}, r"traceEvents\[1\].ts: must be a finite number of micro.*E\+999"),
        ({"dur": 1e308}, r"traceEvents\[1\].dur: must be .*, at most 1E\+300, got 1E\+308"),
        ({"ts": "soon"}, r"traceEvents\[1\].ts: invalid decimal string"),
        ({"dur": ""}, r"traceEvents\[1\].dur: invalid decimal string"),
        ({"dur": [5]}, r"traceEvents\[1\].dur: expected decimal, got array"),
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
