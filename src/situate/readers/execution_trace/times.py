"""The times of an execution trace's nodes, from the Kineto trace of the same run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from statistics import median
from typing import TypeVar

from situate.errors import ReadError
from situate.readers.execution_trace.nodes import MARKER, Node
from situate.readers.kineto import Call, Profile

T = TypeVar("T")

REMEDY = "record both at once, with profile(execution_trace_observer=ExecutionTraceObserver())"


def calls(nodes: Sequence[Node], profile: Profile) -> dict[int, list[Call]]:
    """By id of a node, its calls in the profile.

    If the profile numbers record functions, a node has one call, with the same number and name.
    Older versions of PyTorch do not number them. There a node has one call from every stretch of a
    thread with the names of the node's thread in the same order: one for each equal step.

    Raises:
        ReadError: the two are not of the same run.
    """
    trace_nodes = [node for node in nodes if not node.name.startswith(MARKER)]
    node_calls = _by_record(trace_nodes, profile.calls) or _by_order(trace_nodes, profile.calls)
    if not node_calls:
        raise ReadError(f"the two traces have no call in common: {REMEDY}")
    return node_calls


def seconds(calls: Sequence[Call], profile: Profile, is_on_gpu: bool) -> dict[str, float]:
    """Median seconds of the calls, by device class.

    For calls that launch kernels or use a GPU it is the time of the kernels, on accelerators only.
    For others it is the time from start to end, on any device.
    """
    # The median leaves out the slow first call, which compiles or allocates.
    on_gpu = median(map(profile.gpu_seconds, calls))
    if is_on_gpu or on_gpu:
        return {"accelerator": on_gpu}
    return {"*": median(map(profile.cpu_seconds, calls))}


def _by_record(nodes: Iterable[Node], calls: Iterable[Call]) -> dict[int, list[Call]]:
    by_record = {call.record: call for call in calls if call.record is not None}
    pairs = ((node, by_record.get(node.record)) for node in nodes)
    return {node.id: [call] for node, call in pairs if call and call.name == node.name}


def _by_order(nodes: Iterable[Node], calls: Iterable[Call]) -> dict[int, list[Call]]:
    """Every name is one letter, so that a thread is a text to search in."""
    letters: dict[str, str] = {}
    threads = _threads((call.track, call) for call in calls)
    texts = [_spelled([call.name for call in thread], letters) for thread in threads]
    node_calls: dict[int, list[Call]] = {}
    for thread_nodes in _threads((node.thread, node) for node in nodes):
        pattern = _spelled([node.name for node in thread_nodes], letters)
        places = [(t, at) for t, text in enumerate(texts) for at in _places(pattern, text)]
        if not places:
            first = thread_nodes[0]
            raise ReadError(
                f"the two traces are not of the same run: the {len(pattern)} calls of thread "
                f"{first.thread}, which begins with {first.name!r}, are not in the Kineto trace in "
                f"this order: {REMEDY}"
            )
        for j, node in enumerate(thread_nodes):
            node_calls[node.id] = [threads[t][at + j] for t, at in places]
    return node_calls


def _threads(members: Iterable[tuple[object, T]]) -> list[list[T]]:
    threads: dict[object, list[T]] = {}
    for thread, member in members:
        threads.setdefault(thread, []).append(member)
    return list(threads.values())


def _spelled(names: Iterable[str], letters: dict[str, str]) -> str:
    if len(letters) + len(names := list(names)) > sys.maxunicode:
        raise ReadError(f"the traces have more than {sys.maxunicode} calls")
    return "".join(letters.setdefault(name, chr(len(letters))) for name in names)


def _places(pattern: str, text: str) -> Iterable[int]:
    """Positions of the pattern in the text, without overlap."""
    at = text.find(pattern)
    while at >= 0:
        yield at
        at = text.find(pattern, at + len(pattern))
