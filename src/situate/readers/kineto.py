"""Events of PyTorch's profiler (Kineto) in a Chrome trace: operators on the CPU, calls of the GPU's
runtime, and the kernels that they launch. See docs/formats/chrome-trace.md."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import msgspec

from situate.errors import ReadError
from situate.readers.chrome_trace.events import MICROSECONDS, Span, Track, decode, spans

CALLS = frozenset({"cpu_op", "user_annotation"})
"""Categories of spans that PyTorch's record functions time."""

GPU = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})

NO_WORK = frozenset(
    {
        "user_annotation",
        "gpu_user_annotation",
        "python_function",
        "trace",
        "overhead",
        "external_correlation",
        "cuda_sync",
        "cuda_event",
        "cuda_profiler_range",
        "xpu_sync",
        "xpu_scope_profiler",
    }
)
"""Categories of spans that are no work: groups of other spans, waits, the profiler's own work."""

EARLIER = {
    "operator": "cpu_op",
    "runtime": "cuda_runtime",
    "kernel": "kernel",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
    "user": "gpu_user_annotation",
    "python": "python_function",
}
"""Categories of PyTorch 1.8 to 1.10, in small letters, by their present names."""

_ANNOTATION = re.compile(r"(ProfilerStep|Optimizer\.\w+|enumerate\(\w+\))#")
"""Names of PyTorch's own annotations, which older versions record as operators."""

_WAIT = re.compile(r"Synchronize|EventWait|QueueFinish")
"""Part of the names of waiting runtime calls of CUDA, HIP, Level Zero, Ascend and SYCL."""


class _Args(msgspec.Struct, frozen=True):
    external: int = msgspec.field(name="External id", default=0)
    correlation: int | None = None
    record: int | None = msgspec.field(name="Record function id", default=None)


@dataclass(frozen=True)
class Call:
    """An operator or annotation on the CPU. Times are microseconds."""

    name: str
    track: Track
    start: float
    end: float
    record: int | None
    """Number of the record function, which an execution trace names too."""


@dataclass(frozen=True)
class _Launches:
    """The launches that one thread made through the GPU's runtime."""

    starts: list[float]
    """Start times in microseconds, ascending."""
    totals: list[float]
    """Microseconds on the GPU of the first 0, 1, ... of them."""


@dataclass(frozen=True)
class Profile:
    """A Kineto trace for looking up times.

    `calls` are in the order of their external ids, which PyTorch assigns as calls begin. Calls
    without an id come first, in the order of their times.
    """

    calls: list[Call]
    kernels: int
    warnings: tuple[str, ...]
    _launches: dict[Track, _Launches]

    def cpu_seconds(self, call: Call) -> float:
        """Seconds from the call's start to its end."""
        return (call.end - call.start) / MICROSECONDS

    def gpu_seconds(self, call: Call) -> float:
        """Seconds of all kernels and copies launched between the call's start and its end."""
        if (launches := self._launches.get(call.track)) is None:
            return 0.0
        # Prefix sums answer a call with two searches, however many launches it made.
        first, last = (bisect_left(launches.starts, at) for at in (call.start, call.end))
        return (launches.totals[last] - launches.totals[first]) / MICROSECONDS


def category(span: Span) -> str:
    """The span's category under PyTorch's present name."""
    word = span.category.lower()  # one version wrote gpu_user_Annotation
    word = EARLIER.get(word, word)
    return "user_annotation" if word == "cpu_op" and _ANNOTATION.match(span.name) else word


def is_kineto(spans_of_trace: Iterable[Span]) -> bool:
    """True if there are spans that only Kineto writes."""
    return any(category(span) == "cpu_op" or on_gpu(span) for span in spans_of_trace)


def work(spans_of_trace: Iterable[Span]) -> list[Span]:
    """The spans of work."""
    return [span for span in spans_of_trace if category(span) not in NO_WORK]


def on_gpu(span: Span) -> bool:
    """True for a kernel, a copy or a fill."""
    return category(span) in GPU


def busy(span: Span) -> float:
    """Microseconds of work: a synchronisation waits and does none."""
    return 0.0 if _synchronises(span) else span.own


def place(span: Span) -> tuple[float, float, int]:
    """Sort key of the span among all spans: its start, or its end for a synchronisation."""
    if _synchronises(span):
        # Work that follows a wait depends on its end, not on its start.
        return span.end, -math.inf, span.number
    return span.start, span.start - span.end, span.number


def waits(by_track: Mapping[Track, Sequence[Span]]) -> Iterator[tuple[Span, Span]]:
    """Pairs of a synchronisation and the last span of a GPU stream that ends before it does."""
    streams = [track for track in by_track.values() if any(map(on_gpu, track))]
    ends = [[span.end for span in stream] for stream in streams]
    for span in (span for track in by_track.values() for span in track if _synchronises(span)):
        for stream, its_ends in zip(streams, ends, strict=True):
            # A stream runs its spans in turn, so their ends rise and one search finds the last.
            if last := bisect_right(its_ends, span.end):
                yield stream[last - 1], span


def _synchronises(span: Span) -> bool:
    return _is_runtime(span) and _WAIT.search(span.name) is not None


def _is_runtime(span: Span) -> bool:
    return category(span).endswith(("_runtime", "_driver"))


def profile(data: bytes) -> Profile:
    """The calls and the launches of a Kineto trace.

    Raises:
        ReadError: an event that is not as it should be, or no calls.
    """
    read_spans = spans(decode(data))
    events = read_spans.spans
    args = {s.number: _args(s) for s in events if category(s) in CALLS | GPU or _is_runtime(s)}
    calls = sorted(
        (span for span in events if category(span) in CALLS),
        key=lambda span: (args[span.number].external, span.start, -span.end),
    )
    if not calls:
        raise ReadError("is no Kineto trace: no event has the category cpu_op")
    return Profile(
        [Call(s.name, s.track, s.start, s.end, args[s.number].record) for s in calls],
        sum(map(on_gpu, events)),
        tuple(read_spans.warnings()),
        _launches(events, args),
    )


def _args(span: Span) -> _Args:
    try:
        return msgspec.json.decode(span.args, type=_Args, strict=False)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ReadError(f"traceEvents[{span.number}].args: {error}") from None


def _launches(spans_of_trace: Sequence[Span], args: Mapping[int, _Args]) -> dict[Track, _Launches]:
    """Launches by thread; a kernel and its launching call have the same `correlation`."""
    gpu_time: dict[int, float] = {}
    for span in filter(on_gpu, spans_of_trace):
        if (correlation := args[span.number].correlation) is not None:
            gpu_time[correlation] = gpu_time.get(correlation, 0.0) + span.end - span.start
    calls: dict[Track, list[tuple[float, float]]] = {}
    for span in filter(_is_runtime, spans_of_trace):
        correlation = args[span.number].correlation
        if correlation is not None and correlation in gpu_time:
            # `pop`: kernels count once, even if two calls have their correlation.
            calls.setdefault(span.track, []).append((span.start, gpu_time.pop(correlation)))
    return {track: _by_time(sorted(launches)) for track, launches in calls.items()}


def _by_time(launches: Sequence[tuple[float, float]]) -> _Launches:
    starts = [start for start, _ in launches]
    return _Launches(starts, list(accumulate((time for _, time in launches), initial=0.0)))
