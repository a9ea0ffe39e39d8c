"""Chrome traces as graphs."""

from __future__ import annotations

import pytest

from situate.errors import ReadError
from situate.files.contents import contents
from situate.readers import chrome_trace
from situate.readers.chrome_trace import arrows
from situate.readers.chrome_trace.events import decode, spans, tracks
from tests.readers import traces
from tests.readers.samples import DATA
from tests.readers.traces import event

# Arrows between the spans of a Chrome trace.
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
    events = decode(traces.chrome_trace(*HERE, *THERE, *flows))
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


def graph_of(*events: dict):
    return chrome_trace.read(traces.chrome_trace(*events), "g")


def edges(graph) -> list[tuple[str, str]]:
    return [(graph.ops[a].name, graph.ops[b].name) for a, b in graph.control]


# Spans become ops in the order of their track, and flows become edges.
def test_an_op_takes_the_time_that_is_its_own():
    graph = graph_of(event("a", 0, 10, "x"), event("b", 2, 3, "x"))
    assert {op.name: op.seconds for op in graph.ops} == {"a": {"*": 7e-6}, "b": {"*": 3e-6}}
    assert (graph.unit, graph.source, graph.tensors) == ("s", "chrome-trace", ())


def test_the_order_of_a_track_is_kept_and_tracks_are_apart():
    graph = graph_of(event("c", 9, 1), event("a", 0, 2), event("b", 3, 1), event("z", 1, 9, tid=8))
    assert edges(graph) == [("a", "b"), ("b", "c")]


def test_flows_are_edges():
    start, end = ({"ph": p, "ts": t, "pid": 7, "tid": n} for p, t, n in (("s", 1, 7), ("f", 5, 8)))
    graph = graph_of(event("a", 0, 2), event("b", 5, 1, tid=8), start, end)
    assert edges(graph) == [("a", "b")]
    assert graph.warnings == ()


def test_a_flow_against_time_is_left_out():
    start, end = ({"ph": p, "ts": t, "pid": 7, "tid": n} for p, t, n in (("s", 6, 8), ("f", 7, 7)))
    graph = graph_of(event("a", 0, 9), event("b", 5, 3, tid=8), start, {**end, "bp": "e"})
    assert edges(graph) == []
    assert graph.warnings == ("flows that arrive before they leave are left out: 1",)


def test_names_that_repeat_are_told_apart():
    assert [op.name for op in graph_of(event("a", 0, 1), event("a", 1, 1)).ops] == ["a", "a#2"]


# Kineto's traces: kernels, synchronisations and annotations of all PyTorch versions.
def test_a_kernel_follows_its_launch_and_runs_on_accelerators_only():
    flows = [
        {"ph": "s", "cat": "ac2g", "id": 50, "pid": 7, "tid": 7, "ts": 12},
        {"ph": "f", "cat": "ac2g", "id": 50, "pid": 0, "tid": 7, "ts": 15, "bp": "e"},
    ]
    graph = graph_of(*traces.KERNELS, *flows)
    assert ("cudaLaunchKernel", "sgemm") in edges(graph)
    assert ("sgemm", "clamp") in edges(graph)
    seconds = {op.name: op.seconds for op in graph.ops}
    assert seconds["sgemm"] == {"accelerator": 40e-6}
    assert seconds["aten::linear"] == {"*": 17e-6}
    assert {op.kind for op in graph.ops} == {"aten.linear", "aten.relu", "cuda_runtime", "kernel"}


def test_a_synchronisation_waits_for_the_gpu_and_does_no_work():
    wait = event("cudaDeviceSynchronize", 50, 30, "cuda_runtime", args={})
    after = event("aten::add", 90, 5)
    graph = graph_of(*traces.KERNELS, wait, after)
    assert ("clamp", "cudaDeviceSynchronize") in edges(graph)
    assert ("cudaDeviceSynchronize", "aten::add") in edges(graph)
    assert {op.name: op.seconds for op in graph.ops}["cudaDeviceSynchronize"] == {"*": 0.0}


def test_annotations_of_kineto_are_no_work():
    notes = [event(name, 0, 99, name) for name in ("user_annotation", "python_function", "Trace")]
    assert len(graph_of(*traces.KERNELS, *notes).ops) == len(traces.KERNELS)


EARLIER = {
    "cpu_op": "Operator",
    "cuda_runtime": "Runtime",
    "kernel": "Kernel",
    "gpu_memcpy": "Memcpy",
    "gpu_memset": "Memset",
}
"""Categories of PyTorch 1.8 by those of today."""

COPY = [
    event("aten::copy_", 60, 20, args={"External id": 3}),
    event("cudaMemcpyAsync", 62, 3, "cuda_runtime", args={"correlation": 52}),
    event("Memcpy HtoD", 66, 7, "gpu_memcpy", pid=0, args={"correlation": 52}),
    event("Memset (Device)", 75, 2, "gpu_memset", pid=0, args={"correlation": 53}),
    event("cudaDeviceSynchronize", 81, 30, "cuda_runtime", args={}),
]


def test_the_categories_of_an_earlier_pytorch_mean_the_same():
    events = [*traces.KERNELS, *COPY, event("PyTorch Profiler (0)", 0, 1e6, "Trace", tid=1)]
    earlier = graph_of(*({**e, "cat": EARLIER.get(e["cat"], e["cat"])} for e in events))
    today = graph_of(*events)
    assert (earlier.ops, set(earlier.control)) == (today.ops, set(today.control))
    assert sum(op.seconds.get("accelerator", 0) for op in today.ops) == pytest.approx(54e-6)
    assert sum(op.seconds.get("*", 0) for op in today.ops) == pytest.approx(49e-6)


@pytest.mark.parametrize(
    ("category", "name"),
    [
        ("Trace", "PyTorch Profiler (0)"),
        ("Operator", "ProfilerStep#3"),
        ("cpu_op", "Optimizer.step#SGD.step"),
        ("Operator", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        ("gpu_user_Annotation", "forward"),
        ("overhead", "Activity Buffer Request"),
        ("cuda_sync", "Stream Wait Event"),
        ("cuda_event", "Event Record"),
        ("cuda_profiler_range", "0"),
    ],
)
def test_what_the_profiler_says_of_itself_and_of_waits_is_no_work(category, name):
    assert len(graph_of(*traces.KERNELS, event(name, 0, 999, category)).ops) == len(traces.KERNELS)


@pytest.mark.parametrize(
    ("category", "name"),
    [
        ("Runtime", "cudaStreamSynchronize"),
        ("cuda_runtime", "cudaEventSynchronize_ptsz"),
        ("cuda_runtime", "hipDeviceSynchronize"),
        ("cuda_driver", "cuCtxSynchronize"),
        ("xpu_runtime", "urQueueFinish"),
        ("privateuse1_runtime", "aclrtSynchronizeStream"),
    ],
)
def test_waits_of_every_runtime_take_nothing(category, name):
    wait = event(name, 60, 30, category, args={})
    seconds = {op.name: op.seconds for op in graph_of(*traces.KERNELS, wait).ops}
    assert seconds[name] == {"*": 0.0}


def test_numbers_of_tracks_are_the_same_in_quotes():
    """PyTorch 1.8 quotes the threads of spans, and not those of flows."""
    quoted = [{**e, "tid": str(e["tid"])} for e in traces.KERNELS]
    flows = [
        {"ph": "s", "cat": "async", "name": "launch", "id": 50, "pid": 7, "tid": 7, "ts": 12},
        {"ph": "f", "cat": "async", "name": "launch", "id": 50, "pid": 0, "tid": 7, "ts": 15}
        | {"bp": "e"},
    ]
    graph = graph_of(*quoted, *flows)
    assert ("cudaLaunchKernel", "sgemm") in edges(graph)
    assert {op.module for op in graph.ops} == {"7/7", "0/7"}


def test_a_recorded_trace_counts_every_microsecond_once():
    """Three steps of a network of linear layers, of 9.2 ms on the GPU each."""
    data = contents(DATA / "param-et" / "linear_kineto_3_steps.json.gz")
    graph = chrome_trace.read(data, "linear")
    on_gpu = sum(op.seconds.get("accelerator", 0) for op in graph.ops)
    assert on_gpu / 3 == pytest.approx(9.2e-3, rel=0.02)
    launches = sum(op.kind in ("kernel", "gpu_memset") for op in graph.ops)
    arrivals = {b for a, b in graph.control if graph.ops[a].kind == "cuda_runtime"}
    assert len({b for b in arrivals if graph.ops[b].kind in ("kernel", "gpu_memset")}) == launches
    assert graph.warnings == ()


# Oddities of a file are warnings; broken files are errors.
def test_unmatched_events_are_told():
    graph = graph_of(event("a", 0, 1), {"ph": "B", "name": "b", "ts": 2})
    assert len(graph.ops) == 1
    assert graph.warnings == ("events without their beginning or end are left out: 1",)


def test_a_trace_without_time_says_so():
    with pytest.raises(ReadError, match="has no events that take time"):
        graph_of({"ph": "i", "name": "now", "ts": 1})


def test_a_truncated_object_says_so():
    with pytest.raises(ReadError, match="not valid JSON"):
        chrome_trace.read(traces.chrome_trace(event("a", 0, 1))[:-5], "g")


def test_a_negative_duration_is_told():
    graph = graph_of(event("a", 0, 50), event("b", 60, -30))
    assert [op.seconds for op in graph.ops] == [{"*": 50e-6}, {"*": 0}]
    assert graph.warnings == ("events of negative duration take no time: 1, first traceEvents[1]",)


def test_many_events_are_read_in_time():
    """No step of the reader looks at all events for each of them."""
    events = [event("a", 2 * i, 1, "x", tid=i % 3) for i in range(6_000)]
    flows = [
        {"ph": p, "id": i, "ts": 2 * (i + j), "pid": 7, "tid": (i + j) % 3, "bp": "e"}
        for i in range(4_000)
        for j, p in enumerate("sf")
    ]
    assert len(graph_of(*events, *flows).control) == 6_000 - 3 + 4_000
