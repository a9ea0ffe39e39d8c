"""Ops and the named values between them, for formats in which an op lists its inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from situate.data.graph import Op, Tensor
from situate.errors import ReadError


@dataclass
class _Value:
    producer: int
    size: int
    view_of: str | None = None
    resident: bool = False
    output: bool = False
    readers: dict[int, None] = field(default_factory=dict)


@dataclass
class Dataflow:
    """A graph under construction. An op may read a value before another op states to produce it.

    A *view* is a value that shares the memory of another value of the same size. Its readers read
    the other value, and its op sits with the producer of the other value.
    """

    ops: list[Op] = field(default_factory=list)
    control: dict[tuple[int, int], None] = field(default_factory=dict)
    _values: dict[str, _Value] = field(default_factory=dict)
    _reads: list[tuple[int, str]] = field(default_factory=list)
    _beside: list[tuple[int, str]] = field(default_factory=list)
    _carried: list[str] = field(default_factory=list)
    _outputs: list[str] = field(default_factory=list)
    _parent: dict[int, int] = field(default_factory=dict)

    def add(self, op: Op, reads: Iterable[str] = ()) -> int:
        """Append an op and return its index."""
        self.ops.append(op)
        self._reads += [(len(self.ops) - 1, name) for name in reads]
        return len(self.ops) - 1

    def make(
        self,
        name: str,
        producer: int,
        size: int,
        view_of: str | None = None,
        resident: bool = False,
    ) -> None:
        """State that op `producer` makes value `name` of `size` bytes.

        Raises:
            ReadError: another op makes it too.
        """
        if name in self._values:
            raise ReadError(f"value {name!r} is made twice")
        self._values[name] = _Value(producer, size, view_of, resident)
        if view_of is not None:
            self.beside(producer, view_of)

    def beside(self, op: int, name: str) -> None:
        """Put an op on the device of the value's maker."""
        self._beside.append((op, name))

    def carry(self, name: str) -> None:
        """Put the value's maker on the device of its first reader."""
        self._carried.append(name)

    def output(self, name: str) -> None:
        """Keep the value to the end of the step."""
        self._outputs.append(name)

    def finish(self) -> tuple[tuple[Op, ...], tuple[Tensor, ...], tuple[tuple[int, int], ...]]:
        """Ops, tensors and control edges for a `Graph`.

        Raises:
            ReadError: an op reads a value that no op makes.
        """
        for op, name in self._beside:
            self._join(op, self._value_of(name, op).producer)
        for reader, name in self._reads:
            self._read(reader, name)
        for name in self._outputs:
            if name not in self._values:
                raise ReadError(f"output {name!r} is made by no op")
            self._memory(name).output = True
        for name in self._carried:
            if readers := self._values[name].readers:
                self._join(self._values[name].producer, next(iter(readers)))
        tensors = tuple(_tensor(n, v) for n, v in self._values.items() if v.view_of is None)
        return self._grouped(), tensors, tuple(self.control)

    def _read(self, reader: int, name: str) -> None:
        value = self._value_of(name, reader)
        if value.view_of is not None:
            # A view's op makes no tensor of its own that its readers could wait for.
            self.control[value.producer, reader] = None
        self._memory(name).readers[reader] = None

    def _memory(self, name: str) -> _Value:
        """The value that owns the memory of `name`."""
        path = dict[str, None]()
        while (of := self._values[name].view_of) is not None:
            if name in path:
                raise ReadError(f"value {name!r} is a view of itself")
            path[name] = None
            self._value_of(of, self._values[name].producer)
            name = of
        for view in path:
            # A later look-up of these views takes one step.
            self._values[view].view_of = name
        return self._values[name]

    def _value_of(self, name: str, reader: int) -> _Value:
        if name not in self._values:
            raise ReadError(f"op {self.ops[reader].name!r} reads {name!r}, which no op makes")
        return self._values[name]

    def _join(self, a: int, b: int) -> None:
        # The lower number becomes the root, whose op gives the group its name.
        a, b = self._root(a), self._root(b)
        self._parent[max(a, b)] = min(a, b)

    def _root(self, op: int) -> int:
        while (parent := self._parent.get(op, op)) != op:
            # Path halving keeps the trees of the union-find flat.
            self._parent[op] = self._parent.get(parent, parent)
            op = parent
        return op

    def _grouped(self) -> tuple[Op, ...]:
        """Every group is called after its first op."""
        roots = [self._root(op) for op in range(len(self.ops))]
        shared = {root for op, root in enumerate(roots) if root != op}
        return tuple(
            msgspec.structs.replace(op, group=self.ops[root].name) if root in shared else op
            for op, root in zip(self.ops, roots, strict=True)
        )


def _tensor(name: str, value: _Value) -> Tensor:
    return Tensor(
        name, value.producer, value.size, tuple(value.readers), value.output, value.resident
    )


# Unique names, for formats that do not guarantee them.
def unique(names: Iterable[str]) -> list[str]:
    """The names in order; repeated names get the suffixes `#2`, `#3`, ..."""
    names = list(names)
    used_names = set(names)
    counts: dict[str, int] = {}
    return [_next(name, counts, used_names) for name in names]


def _next(name: str, counts: dict[str, int], used_names: set[str]) -> str:
    counts[name] = counts.get(name, 0) + 1
    if counts[name] == 1:
        return name
    while (candidate := f"{name}#{counts[name]}") in used_names:
        counts[name] += 1
    used_names.add(candidate)
    return candidate
