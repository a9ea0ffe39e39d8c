"""Dependencies of an execution trace's ops, by the memory that they read and write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from situate.data.graph import Op
from situate.readers.dataflow import Dataflow
from situate.readers.execution_trace.nodes import Value


@dataclass
class _Buffer:
    """Memory at one point of the trace."""

    size: int
    value: str | None = None
    """The value that lies in it; None if nobody has written it yet."""
    held: bool = False
    """It was there before the trace began: a parameter, the optimiser's state, a batch."""
    readers: list[int] = field(default_factory=list)
    """Ops that have read this value."""


@dataclass
class Memory:
    """All memory while the ops are taken one after the other as they ran.

    Every write makes a new value, which those that read the memory later wait for. An op that
    overwrites a value waits for those that read it before. What nobody wrote was there when the
    trace began: an op of its own that takes no time and holds it, with which those that overwrite
    it share a device.
    """

    flow: Dataflow = field(default_factory=Dataflow)
    _buffers: dict[int, _Buffer] = field(default_factory=dict)

    def allocate(self, values: Iterable[Value]) -> None:
        """Take note of memory that nobody has written."""
        for value in values:
            self._buffers[value.storage] = _Buffer(value.size)

    def touch(self, values: Iterable[Value]) -> None:
        """Take note of memory that is looked at and not read, as a view of it."""
        for value in values:
            self._buffer(value)

    def run(
        self, op: Op, inputs: Sequence[Value], outputs: Sequence[Value], written: Iterable[int]
    ) -> None:
        """Append an op that overwrites the memory of the numbers `written` among its inputs."""
        read = {value.storage: self._buffer(value) for value in inputs}
        index = self.flow.add(op, [b.value for b in read.values() if b.value is not None])
        overwritten = [storage for storage in dict.fromkeys(written) if storage in read]
        fresh = _sizes(value for value in outputs if value.storage not in read)
        several = len(overwritten) + len(fresh) > 1
        for place, storage in enumerate((*overwritten, *fresh)):
            name = f"{op.name}:{place}" if several else op.name
            if storage in read:
                self._overwrite(read[storage], index, name)
            else:
                self._buffers[storage] = _Buffer(fresh[storage], name)
                self.flow.make(name, index, fresh[storage])
        for storage in read.keys() - set(overwritten):
            read[storage].readers.append(index)

    def _overwrite(self, buffer: _Buffer, op: int, name: str) -> None:
        self.flow.control.update(dict.fromkeys((reader, op) for reader in buffer.readers))
        self.flow.make(name, op, buffer.size, resident=buffer.held)
        if buffer.held and buffer.value is not None:
            self.flow.beside(op, buffer.value)
        buffer.value = name
        buffer.readers = []

    def _buffer(self, value: Value) -> _Buffer:
        """The memory a value lies in; where it is new, an op that holds it."""
        if value.storage not in self._buffers:
            name = f"storage:{value.storage}"
            op = self.flow.add(Op(name, kind="buffer", dtype=value.dtype, persistent=value.size))
            self.flow.make(name, op, value.size, resident=True)
            self._buffers[value.storage] = _Buffer(value.size, name, held=True)
        return self._buffers[value.storage]


def _sizes(values: Iterable[Value]) -> dict[int, int]:
    """Bytes of every storage: of the largest value in it."""
    sizes: dict[int, int] = {}
    for value in values:
        sizes[value.storage] = max(value.size, sizes.get(value.storage, 0))
    return sizes


def written(schema: str, name: str, inputs: Sequence[Value]) -> list[int]:
    """Numbers of the memory that an operator overwrites: of the arguments that its schema marks
    with `!`; without any mark and with `_` behind its name, of the first."""
    arguments = _arguments(schema)
    marked = {place for place, argument in enumerate(arguments) if "!" in argument}
    if not marked and re.search(r"[^_]_$", name.partition(".")[0]):
        marked = {0}
    return [value.storage for value in inputs if value.argument in marked]


@lru_cache(maxsize=4096)
def _arguments(schema: str) -> tuple[str, ...]:
    """The declarations of the arguments: `f(Tensor(a!) self, *, Scalar alpha=1) -> ...` has two."""
    parts, depth = [""], 0
    for letter in schema.partition("(")[2].rpartition("->")[0].rstrip().removesuffix(")"):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(part for part in map(str.strip, parts) if part not in ("*", ""))
