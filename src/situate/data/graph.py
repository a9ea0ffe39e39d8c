"""The computation graph: ops, the tensors between them, control edges, colocation groups."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral, Real
from typing import Any, Literal, get_args

import msgspec

from situate.data.cuts import CutParameter, Cuts
from situate.data.slices import Slices
from situate.data.update_rule import update_rule
from situate.errors import GraphError, SituateError
from situate.files.strict_json import plain
from situate.validation import check, check_items, check_parts

BYTES_LIMIT = 2**53
"""Largest size in bytes: a double represents all smaller integers exactly."""

TOTAL_LIMIT = 2**62
"""Largest sum of sizes: it fits a signed 64-bit integer with room to add."""

Unit = Literal["s", ""]

SIZES = ("flops", "traffic", "persistent", "workspace")
"""Fields of an op that are whole numbers."""


class Op(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One operation; all sizes are bytes.

    Its time on a device is `seconds`, if present. Keys apply in this order: the device's name, its
    model, its kind, `accelerator` for any device but a CPU, `*`. With a missing key the op cannot
    run there. Without `seconds` the roofline derives the time from `kind`, `dtype`, `flops` and
    `traffic`.
    """

    name: str
    kind: str = "op"
    """Operator type in the framework's notation, such as `aten.convolution`."""
    flops: int = 0
    """Floating-point operations; a multiplication and the addition to it are two."""
    traffic: int = 0
    """Bytes read and written."""
    dtype: str = "float32"
    seconds: dict[str, float] | None = None
    persistent: int = 0
    """Bytes held on the op's device for the whole step: parameters, optimiser state."""
    workspace: int = 0
    """Bytes needed while the op runs."""
    group: str | None = None
    """Ops of one group share a device."""
    device: str | None = None
    """Pin: the name, or the kind, of the device that must run the op."""
    module: str = ""
    """Path of the op's module, such as `layer1.0.conv2`."""
    phase: str = ""
    """`forward`, `backward` or `update`; empty if unknown."""
    signature: str = ""
    """Key of measured costs: ops of equal signature take equally long on one device. Empty if the
    source has none."""
    slice: int | None = None
    """Number, from 0, of the op's slice of the batch; None if the op runs once a step."""
    replica: int | None = None
    """Number, from 0, of the replica of the parameters that the op holds, updates, or adds up
    gradients for; None for other ops."""
    recompute: bool = False
    """True for an op that runs an op of the forward pass again, before the backward pass."""
    part: int | None = None
    """Number, from 0, of the part that the op computes, holds or updates; None for a whole op."""


class Tensor(msgspec.Struct, frozen=True, omit_defaults=True):
    """One op's output that others read. `producer` and `consumers` are indices into `Graph.ops`."""

    name: str
    producer: int
    size: int
    """Bytes."""
    consumers: tuple[int, ...] = ()
    output: bool = False
    """Lives to the end of the step on its producer's device."""
    resident: bool = False
    """Part of its producer's persistent bytes (a parameter): takes no further memory there."""
    seconds: float | None = None
    """Transfer time between any two devices; None if the cluster's links decide."""


class MachineDevice(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A device that a graph's own file describes."""

    name: str
    kind: str
    memory: int | None = None
    """Usable bytes; None is unlimited."""


@dataclass(frozen=True)
class Graph:
    """An immutable, validated computation graph.

    Args:
        name: in reports.
        ops: operations; names are unique.
        tensors: data edges; names are unique.
        control: pairs (before, after) of op indices.
        unit: `s` where times are seconds, empty where the format has no unit of time.
        rules: the rules of execution the source format is scored by, one of `situate.RULES`.
        machine: the devices the source file brings, if any.
        source: the format the graph was read from.
        optimizer: the update of the parameters, as `situate.capture` takes it (`adamw:clip=1.0`);
            empty where the step updates none, None where the format does not say.
        warnings: remarks on the file, a line each.
        slices: the samples of each slice of the batch; None where the step takes it whole.
        recompute: paths of the modules that run their forward pass again before their backward
            pass.
        cuts: of ops into parts; None where all ops are whole.
        cut_parameters: the division of each parameter that is cut.

    Raises:
        GraphError: names the op or tensor at fault, and the fault.
    """

    name: str
    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...] = ()
    control: tuple[tuple[int, int], ...] = ()
    unit: Unit = "s"
    rules: str = "situate"
    machine: tuple[MachineDevice, ...] = ()
    source: str = "situate"
    warnings: tuple[str, ...] = field(default=(), compare=False)
    optimizer: str | None = None
    slices: Slices | None = None
    recompute: tuple[str, ...] = ()
    cuts: Cuts | None = None
    cut_parameters: tuple[CutParameter, ...] = ()

    def __post_init__(self) -> None:
        _check_types(self)
        _check_ops(self.ops)
        _check_numbers(self)
        _check_recompute(self)
        _check_tensors(self.tensors, len(self.ops), self.ops)
        _check_control(self.control, self.ops)
        _check_totals(self.ops, self.tensors)
        _check_groups(self.ops)
        order, is_program = _topological(len(self.ops), self.edges())
        if len(order) < len(self.ops):
            raise GraphError(f"graph {self.name!r}: cycle: {self._a_cycle(set(order))}")
        object.__setattr__(self, "_order", tuple(order))
        object.__setattr__(self, "_is_program", is_program)

    def __repr__(self) -> str:
        return f"<Graph {self.name!r}: {len(self.ops):,} ops, {len(self.tensors):,} tensors>"

    @property
    def order(self) -> tuple[int, ...]:
        """Indices of all ops, producers before consumers; ties in file order."""
        return self._order  # type: ignore[attr-defined, no-any-return]

    @property
    def program_order(self) -> tuple[int, ...]:
        """The order of the file if it is topological, as of a captured program; otherwise `order`.

        It runs best on one device: weights that a program reads repeatedly, such as those of an
        unrolled layer, are read while caches hold them.
        """
        is_program: bool = self._is_program  # type: ignore[attr-defined]
        return tuple(range(len(self.ops))) if is_program else self.order

    def edges(self) -> Iterator[tuple[int, int]]:
        """All pairs (producer, consumer), data and control, possibly repeated."""
        for tensor in self.tensors:
            for consumer in tensor.consumers:
                yield tensor.producer, consumer
        yield from self.control

    @cached_property
    def hash(self) -> str:
        """SHA-256 in hexadecimal of everything that placement depends on.

        Signatures are left out, because they are only keys of measured costs, which have a hash of
        their own in plans. Graphs with and without signatures have equal hashes.
        """
        # As dictionaries: the bytes of an op are those of the fields that it has, however many more
        # its class comes to have.
        ops = [msgspec.structs.replace(op, signature="") for op in self.ops]
        content = (
            msgspec.to_builtins(ops, enc_hook=plain),
            self.tensors,
            self.control,
            self.unit,
            self.machine,
        )
        return hashlib.sha256(msgspec.msgpack.encode(content, enc_hook=plain)).hexdigest()

    def _a_cycle(self, sorted_ops: set[int]) -> str:
        """One cycle among the ops that no topological order reaches, as `a -> b -> a`."""
        # Each of these ops has a predecessor among them, so a walk backwards comes to an op twice.
        before: dict[int, int] = {}
        for producer, consumer in self.edges():
            if producer not in sorted_ops and consumer not in sorted_ops:
                before[consumer] = producer
        op, visited_at = next(iter(before)), dict[int, int]()
        while op not in visited_at:
            visited_at[op] = len(visited_at)
            op = before[op]
        path = [o for o, position in visited_at.items() if position >= visited_at[op]][::-1]
        names = [repr(self.ops[o].name) for o in (*path, path[0])]
        if len(names) > 12:
            names = [*names[:6], "...", *names[-5:]]
        return " -> ".join(names)


def _check_types(graph: Graph) -> None:
    check_items([graph], Graph, lambda _: "graph", GraphError)
    if graph.unit not in get_args(Unit):
        raise GraphError(f"graph {graph.name!r}: unit: must be 's' or empty, got {graph.unit!r}")
    _check_optimizer(graph)
    ops, tensors, control = graph.ops, graph.tensors, graph.control
    check_items(ops, Op, lambda i: _item_name("op", ops[i], i), GraphError, but=SIZES)
    check_items(
        tensors, Tensor, lambda i: _item_name("tensor", tensors[i], i), GraphError, ["size"]
    )
    check_items(graph.machine, MachineDevice, lambda i: f"machine[{i}]", GraphError)
    consumers = [tensor.consumers for tensor in tensors]
    check_parts(consumers, int, lambda i: f"tensor {tensors[i].name!r}: consumers", GraphError)
    for i, pair in enumerate(control):
        check(pair, tuple, f"control[{i}]", GraphError)
        if len(pair) != 2:
            raise GraphError(f"control[{i}]: must be a pair of op indices, got {pair!r:.80}")
    check_parts(control, int, lambda i: f"control[{i}]", GraphError)


def _check_optimizer(graph: Graph) -> None:
    try:
        if graph.optimizer:
            update_rule(graph.optimizer)
    except SituateError as error:
        raise GraphError(f"graph {graph.name!r}: {error}") from None


def _check_numbers(graph: Graph) -> None:
    slices = len(graph.slices.shares) if graph.slices else 0
    replicas = len(graph.slices.replicas) if graph.slices else 0
    parts = max((len(cut.shares) for cut in graph.cuts.cuts), default=0) if graph.cuts else 0
    for op in graph.ops:
        _check_number(op, "slice", op.slice, slices)
        _check_number(op, "replica", op.replica, replicas)
        _check_number(op, "part", op.part, parts)


def _check_number(op: Op, role: str, number: int | None, count: int) -> None:
    if number is not None and not 0 <= number < count:
        raise GraphError(
            f"op {op.name!r}: {role}: must be below the number of {role}s, {count}, got {number}"
        )


def _check_recompute(graph: Graph) -> None:
    for op in graph.ops:
        if op.recompute and not any(f"{op.module}.".startswith(f"{m}.") for m in graph.recompute):
            raise GraphError(
                f"op {op.name!r}: recompute: its module {op.module!r} lies in none of those that "
                f"run again: {', '.join(graph.recompute) or 'there are none'}"
            )


def _item_name(noun: str, item: Op | Tensor, index: int) -> str:
    name = getattr(item, "name", None)
    return f"{noun} {name!r}" if isinstance(name, str) else f"{noun}s[{index}]"


def _check_ops(ops: Sequence[Op]) -> None:
    if not ops:
        raise GraphError("the graph has no ops")
    _check_unique([op.name for op in ops], "op")
    for op in ops:
        for field_name in SIZES:
            _check_size(getattr(op, field_name), f"op {op.name!r}: {field_name}")
        for device, seconds in (op.seconds or {}).items():
            _check_seconds(seconds, f"op {op.name!r}: seconds[{device!r}]")


def _check_tensors(tensors: Sequence[Tensor], n: int, ops: Sequence[Op]) -> None:
    _check_unique([tensor.name for tensor in tensors], "tensor")
    for tensor in tensors:
        where = f"tensor {tensor.name!r}"
        if not 0 <= tensor.producer < n:
            raise GraphError(f"{where}: its producer does not exist")
        for consumer in tensor.consumers:
            if not 0 <= consumer < n:
                raise GraphError(f"{where}: one of its consumers does not exist")
            if consumer == tensor.producer:
                raise GraphError(f"{where}: op {ops[consumer].name!r} consumes its own output")
        if len(set(tensor.consumers)) < len(tensor.consumers):
            raise GraphError(f"{where}: lists the same consumer twice")
        _check_size(tensor.size, f"{where}: size")
        if tensor.seconds is not None:
            _check_seconds(tensor.seconds, f"{where}: seconds")


def _check_control(control: Sequence[tuple[int, int]], ops: Sequence[Op]) -> None:
    for before, after in control:
        if not (0 <= before < len(ops) and 0 <= after < len(ops)):
            raise GraphError(f"control edge {(before, after)}: names an op that does not exist")
        if before == after:
            raise GraphError(f"control edge: op {ops[before].name!r} waits for itself")


def _check_totals(ops: Sequence[Op], tensors: Sequence[Tensor]) -> None:
    total = sum(op.persistent + op.workspace for op in ops) + sum(t.size for t in tensors)
    if total > TOTAL_LIMIT:
        raise GraphError(f"all sizes together are {total} bytes, more than 2^62")


def _check_groups(ops: Sequence[Op]) -> None:
    pinned: dict[str, Op] = {}
    for op in ops:
        if op.group is None or op.device is None:
            continue
        other = pinned.setdefault(op.group, op)
        if other.device != op.device:
            raise GraphError(
                f"group {op.group!r} is pinned to two devices: op {other.name!r} to "
                f"{other.device!r}, op {op.name!r} to {op.device!r}"
            )


def _check_unique(names: Sequence[str], noun: str) -> None:
    if len(set(names)) < len(names):
        name = Counter(names).most_common(1)[0][0]
        raise GraphError(f"two {noun}s are called {name!r}")
    if "" in names:
        raise GraphError(f"{noun} {names.index('')} has an empty name")


def _check_size(value: Any, where: str) -> None:
    if isinstance(value, int) and 0 <= value <= BYTES_LIMIT:  # a graph has hundreds of thousands
        return
    number = isinstance(value, Real)
    if number and not 0 <= value <= BYTES_LIMIT:
        # Python writes no number of more than 4,300 digits.
        got = "a number beyond 2^256" if abs(value) > 2**256 else value
        raise GraphError(f"{where}: must be between 0 and 2^53, got {got}")
    if not isinstance(value, Integral):
        raise GraphError(f"{where}: must be an integer, got {value!r}")


def _check_seconds(value: Any, where: str) -> None:
    number = isinstance(value, Real)
    if not number:
        raise GraphError(f"{where}: must be a number, got {value!r}")
    if not (math.isfinite(value) and value >= 0):
        raise GraphError(f"{where}: must be finite and not negative, got {value}")


def _topological(n: int, edges: Iterator[tuple[int, int]]) -> tuple[list[int], bool]:
    """Kahn's algorithm, first in first out.

    Returns:
        A topological order, shorter than n if there is a cycle, and whether the file's order is
        topological too.
    """
    successors: list[list[int]] = [[] for _ in range(n)]
    missing = [0] * n
    is_program = True
    for before, after in edges:
        successors[before].append(after)
        missing[after] += 1
        is_program &= before < after
    # The list is the queue: it grows while the loop below reads it.
    order = [op for op in range(n) if not missing[op]]
    for op in order:
        for after in successors[op]:
            missing[after] -= 1
            if not missing[after]:
                order.append(after)
    return order, is_program
