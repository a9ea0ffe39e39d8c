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
    """The value in it; None if no op has written it yet."""
    before_trace: bool = False
    """True if it exists before the trace begins: a parameter, the optimiser's state, a batch."""
    readers: list[int] = field(default_factory=list)
    """Ops that have read this value."""


@dataclass
class Memory:
    """All memory, as the ops run one after the other.

    Every write produces a new value, and later readers of the memory wait for it. An op that
    overwrites a value waits for its earlier readers. Memory that no op wrote exists before the
    trace begins: an op of its own holds it and takes no time. Ops that overwrite such memory share
    its device.
    """

    flow: Dataflow = field(default_factory=Dataflow)
    _buffers: dict[int, _Buffer] = field(default_factory=dict)

    def allocate(self, values: Iterable[Value]) -> None:
        """Record memory that no op has written."""
        for value in values:
            self._buffers[value.storage] = _Buffer(value.size)

    def touch(self, values: Iterable[Value]) -> None:
        """Record memory that a view refers to without reading it."""
        for value in values:
            self._buffer(value)

    def run(
        self,
        op: Op,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        overwritten_storages: Iterable[int],
    ) -> None:
        """Append an op that overwrites the memory `overwritten_storages` among its inputs."""
        buffers = {value.storage: self._buffer(value) for value in inputs}
        index = self.flow.add(op, [b.value for b in buffers.values() if b.value is not None])
        overwritten = [
            storage for storage in dict.fromkeys(overwritten_storages) if storage in buffers
        ]
        fresh = _sizes(value for value in outputs if value.storage not in buffers)
        several = len(overwritten) + len(fresh) > 1
        for place, storage in enumerate((*overwritten, *fresh)):
            name = f"{op.name}:{place}" if several else op.name
            if storage in buffers:
                self._overwrite(buffers[storage], index, name)
            else:
                self._buffers[storage] = _Buffer(fresh[storage], name)
                self.flow.make(name, index, fresh[storage])
        # The next op that overwrites this memory waits for these readers.
        for storage in buffers.keys() - set(overwritten):
            buffers[storage].readers.append(index)

    def _overwrite(self, buffer: _Buffer, op: int, name: str) -> None:
        self.flow.control.update(dict.fromkeys((reader, op) for reader in buffer.readers))
        self.flow.make(name, op, buffer.size, resident=buffer.before_trace)
        # Memory from before the trace is persistent, so its writers share its device.
        if buffer.before_trace and buffer.value is not None:
            self.flow.beside(op, buffer.value)
        buffer.value = name
        buffer.readers = []

    def _buffer(self, value: Value) -> _Buffer:
        """The memory of a value; new memory gets an op that holds it."""
        if value.storage not in self._buffers:
            name = f"storage:{value.storage}"
            op = self.flow.add(Op(name, kind="buffer", dtype=value.dtype, persistent=value.size))
            self.flow.make(name, op, value.size, resident=True)
            self._buffers[value.storage] = _Buffer(value.size, name, before_trace=True)
        return self._buffers[value.storage]


def _sizes(values: Iterable[Value]) -> dict[int, int]:
    """Bytes of every storage: of the largest value in it."""
    sizes: dict[int, int] = {}
    for value in values:
        sizes[value.storage] = max(value.size, sizes.get(value.storage, 0))
    return sizes


def overwritten_storages(schema: str, name: str, inputs: Sequence[Value]) -> list[int]:
    """Storage numbers that an operator overwrites: of the arguments marked `!` in its schema.

    Without any mark, an operator whose name ends in `_` overwrites its first argument.
    """
    arguments = _arguments(schema)
    marked = {place for place, argument in enumerate(arguments) if "!" in argument}
    # `aten::add_` writes over its first argument, `aten::__and__` does not.
    if not marked and re.search(r"[^_]_$", name.partition(".")[0]):
        marked = {0}
    return [value.storage for value in inputs if value.argument in marked]


@lru_cache(maxsize=4096)
def _arguments(schema: str) -> tuple[str, ...]:
    """The declarations of the arguments: `f(Tensor(a!) self, *, Scalar alpha=1) -> ...` has two."""
    parts, depth = [""], 0
    for letter in schema.partition("(")[2].rpartition("->")[0].rstrip().removesuffix(")"):
        # Types such as `Tensor(a!)` and `int[2]` nest; commas inside them separate nothing.
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(part for part in map(str.strip, parts) if part not in ("*", ""))
