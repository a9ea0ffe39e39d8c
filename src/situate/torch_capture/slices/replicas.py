"""Replicas of the parameters: copies that some of the slices read, each with its own update."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from situate.data.slices import AUTO, Slices
from situate.errors import SituateError, nearest
from situate.torch_capture.flow import live_nodes, overwritten
from situate.torch_capture.names import REPLICA, state_name
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    from torch import fx


class Replicas:
    """The copies of a step's parameters, and the slices that read them.

    Copy 0 has the parameter's own name, and is the model's.

    Args:
        parts: the trace of each slice.
        slices: of the batch, with its replicas.

    Attributes:
        of_slice: by slice, the number of its replica; 0 if parameters exist once.
        once: names of the parameters that exist once beside replicas.

    Raises:
        SituateError: a name in `slices.once` matches no parameter.
    """

    def __init__(self, parts: Sequence[Trace], slices: Slices) -> None:
        self.of_slice = slices.replica
        self._count = len(slices.replicas)
        self._first = parts[0]
        self._overwritten = list(
            dict.fromkeys(name for part in parts for name in overwritten(part))
        )
        parameters = dict.fromkeys(self._first.canonical.values())
        single = {*_matching(slices.once, list(parameters)), *self._unfit(parts, parameters)}
        copied = (name for name in parameters if self._count and name not in single)
        self._copied = dict.fromkeys(copied)
        self.once = tuple(name for name in parameters if name in single) if self._count else ()

    def parameter_name(self, name: str, s: int) -> str:
        """The name of the copy that slice `s` reads for the parameter or buffer `name` of its
        trace."""
        number = self.of_slice[s]
        # The many names of a parameter stand for one copy.
        return _copy_name(self._first.canonical[name], number) if self._is_copied(name) else name

    def writes(self, name: str, s: int) -> tuple[int, str]:
        """The replica and the name of the buffer that slice `s` writes for `name` of its trace.
        Parameters that the step writes belong to no replica."""
        return 0 if name in self._first.canonical else self.of_slice[s], name

    def mark(self, node: fx.Node, s: int) -> None:
        """Turn a parameter's placeholder into that of the copy that slice `s` reads."""
        name = state_name(node)
        if self._is_copied(name):
            descriptor: Any = node.meta["desc"]
            target = f"model.{self.parameter_name(name, s)}"
            node.meta["desc"] = dataclasses.replace(descriptor, target=target)
            node.meta[REPLICA] = self.of_slice[s]

    def notes(self, shared: Collection[str] = ()) -> Iterator[str]:
        """A warning about buffers that each replica writes for itself; `shared` ones are written
        together."""
        parameters = {*self._first.canonical, *shared}
        buffers = [name for name in self._overwritten if name not in parameters]
        if self._count and buffers:
            yield (
                f"replicas: buffers, {buffers[0]!r} the first of {len(buffers)}, are written by "
                "each for itself; the model keeps those of replica 0, as DDP does"
            )

    def noted(self, trace: Trace) -> Trace:
        """The trace of the whole step, with the copies."""
        pairs = [(_copy_name(n, r), n) for r in range(1, self._count) for n in self._copied]
        return dataclasses.replace(
            trace,
            canonical=trace.canonical | {copy: copy for copy, _ in pairs},
            trainable=trace.trainable.union(c for c, name in pairs if name in trace.trainable),
            copies=dict(pairs),
        )

    def _is_copied(self, name: str) -> bool:
        return self._first.canonical.get(name) in self._copied

    def _unfit(self, parts: Sequence[Trace], parameters: Iterable[str]) -> Iterator[str]:
        """Parameters that cannot be copied: some slice does not read them, the step writes them, or
        a copy's name is taken."""
        reads = [set(_parameters_read(part)) for part in parts]
        for name in parameters:
            is_read = all(name in names for names in reads)
            # A user's parameter may be called `replica1/weight` as well.
            is_taken = any(
                _copy_name(name, r) in self._first.canonical for r in range(1, self._count)
            )
            if not is_read or name in self._overwritten or is_taken:
                yield name


def _copy_name(name: str, number: int) -> str:
    return f"replica{number}/{name}" if number else name


def _parameters_read(part: Trace) -> Iterator[str]:
    """The parameters that a slice's results depend on."""
    names = (state_name(node) for node in live_nodes(part) if node.op == "placeholder")
    yield from (part.canonical[name] for name in names if name in part.canonical)


def _matching(patterns: Sequence[str], parameters: Sequence[str]) -> Iterator[str]:
    """The parameters that match patterns.

    Raises:
        SituateError: a pattern matches none.
    """
    for pattern in patterns:
        matches = [name for name in parameters if name == pattern or fnmatchcase(name, pattern)]
        if not matches and pattern == AUTO:
            raise SituateError(
                "replicas: auto is chosen for a cluster, by plan, compare and explain, and stands "
                "alone: name the parameters that are there once"
            )
        if not matches:
            raise SituateError(
                f"replicas: no parameter is called {pattern!r}{nearest(pattern, parameters)}"
            )
        yield from matches
