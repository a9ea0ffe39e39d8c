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
    """By id of a node, the calls of the profile that it stands for.

    Where the profile numbers record functions, that is one call of the same number and name. Where
    it does not, as in older versions of PyTorch, it is one call from every stretch of a thread that
    has the names of the node's thread in the same order: as many as there are steps like the traced
    one.

    Raises:
        ReadError: the two are not of the same run.
    """
    named = [node for node in nodes if not node.name.startswith(MARKER)]
    found = _by_record(named, profile.calls) or _by_order(named, profile.calls)
    if not found:
        raise ReadError(f"the two traces have no call in common: {REMEDY}")
    return found


def seconds(calls: Sequence[Call], profile: Profile, is_on_gpu: bool) -> dict[str, float]:
    """The median over the calls: of the kernels they launched, which says nothing of CPUs, or of
    the time from start to end of what launched none and touches nothing on a GPU."""
    on_gpu = median(map(profile.gpu_seconds, calls))
    if is_on_gpu or on_gpu:
        return {"accelerator": on_gpu}
    return {"*": median(map(profile.cpu_seconds, calls))}


def _by_record(nodes: Iterable[Node], calls: Iterable[Call]) -> dict[int, list[Call]]:
    by_record = {call.record: call for call in calls if call.record is not None}
    found = ((node, by_record.get(node.record)) for node in nodes)
    return {node.id: [call] for node, call in found if call and call.name == node.name}


def _by_order(nodes: Iterable[Node], calls: Iterable[Call]) -> dict[int, list[Call]]:
    """Every name is one letter, so that a thread is a text to search in."""
    letters: dict[str, str] = {}
    threads = _threads((call.track, call) for call in calls)
    texts = [_spelled([call.name for call in thread], letters) for thread in threads]
    found: dict[int, list[Call]] = {}
    for thread_nodes in _threads((node.thread, node) for node in nodes):
        wanted = _spelled([node.name for node in thread_nodes], letters)
        places = [(t, at) for t, text in enumerate(texts) for at in _places(wanted, text)]
        if not places:
            first = thread_nodes[0]
            raise ReadError(
                f"the two traces are not of the same run: the {len(wanted)} calls of thread "
                f"{first.thread}, which begins with {first.name!r}, are not in the Kineto trace in "
                f"this order: {REMEDY}"
            )
        for j, node in enumerate(thread_nodes):
            found[node.id] = [threads[t][at + j] for t, at in places]
    return found


def _threads(members: Iterable[tuple[object, T]]) -> list[list[T]]:
    threads: dict[object, list[T]] = {}
    for thread, member in members:
        threads.setdefault(thread, []).append(member)
    return list(threads.values())


def _spelled(names: Iterable[str], letters: dict[str, str]) -> str:
    if len(letters) + len(names := list(names)) > sys.maxunicode:
        raise ReadError(f"the traces have more than {sys.maxunicode} calls")
    return "".join(letters.setdefault(name, chr(len(letters))) for name in names)


def _places(wanted: str, text: str) -> Iterable[int]:
    """Where it is in the text, one not into the other."""
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + len(wanted))
