"""A call of an operator at the size of a slice, beside the same call at the size of the batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from situate.torch_capture import cost
from situate.torch_capture.nodes import bound_arguments, operator_name
from situate.torch_capture.slices.dependence.relation import (
    SHARED,
    UNKNOWN,
    ZERO,
    Reason,
    Relation,
    Unrelated,
)

if TYPE_CHECKING:
    from torch import fx

Relations = Relation | tuple[Relation, ...]
"""The relation of one value, or of each value that an operator returns."""

MAX_POWER = 4

RELATIVE_ROUNDING = 1e-6

SIZES = frozenset({"size", "sizes", "input_size", "input_sizes", "output_size", "n", "N"})
"""Names of arguments that repeat a size, which shapes contain anyway."""


@dataclass(frozen=True)
class Call:
    """A node in the trace of a slice.

    Attributes:
        node: of the slice.
        whole: the corresponding node of the whole batch.
        samples: of the slice.
        ratio: samples of the batch over those of the slice.
        before: by earlier node of the slice's trace, its relation.
    """

    node: fx.Node
    whole: fx.Node
    samples: int
    ratio: Fraction
    before: Mapping[fx.Node, Relations]

    @cached_property
    def name(self) -> str:
        """The name of the operator, such as `mean`."""
        return operator_name(self.node)

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """The arguments by name, with defaults."""
        return bound_arguments(self.node)

    @cached_property
    def whole_arguments(self) -> dict[str, Any]:
        """The arguments at the size of the batch."""
        return bound_arguments(self.whole)

    @property
    def inputs(self) -> list[Relation]:
        """The relations of the tensors that the node reads, one for each."""
        return [self.relation(source) for source in self.node.all_input_nodes]

    @property
    def first(self) -> Any:
        """The first argument."""
        return self.node.args[0]

    def relation(self, source: fx.Node) -> Relation:
        """The relation of an earlier node; of its first result if it has several."""
        related = self.before[source]
        return related if isinstance(related, Relation) else related[0]

    def operand(self, name: str) -> Relation | None:
        """The relation of an argument, a tensor or a number; None if it is left out."""
        value = self.arguments.get(name)
        if value is None or isinstance(value, str):
            return None
        if isinstance(value, (bool, int, float, complex)):
            return self.number(name)
        return self.relation(value)

    def number(self, name: str) -> Relation:
        """The relation of a number among the arguments."""
        return number_relation(self.arguments[name], self.whole_arguments[name], self.ratio)

    def shape(self, node: fx.Node | None = None) -> tuple[int, ...]:
        """The shape of the first result of this node, or of an earlier one."""
        return next(shapes(node or self.node), ())

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of all results."""
        return list(shapes(self.node))

    @cached_property
    def growing(self) -> list[tuple[int, ...]]:
        """For each result, the dimensions that grow with the batch."""
        pairs = zip(self.shapes, shapes(self.whole), strict=True)
        return [growing(ours, theirs) for ours, theirs in pairs]

    def growing_of(self, source: fx.Node) -> tuple[int, ...]:
        """The dimensions of an input that grow with the batch."""
        k = self.node.all_input_nodes.index(source)
        other = self.whole.all_input_nodes[k]
        return growing(next(shapes(source), ()), next(shapes(other), ()))

    def rank(self, name: str) -> int:
        """The number of dimensions of an argument."""
        return len(self.shape(self.arguments[name]))

    def dims(self, name: str, rank: int) -> set[int]:
        """The dimensions that an argument names; all of them if it is empty or left out."""
        dims = self.arguments.get(name)
        if dims is None or dims == []:
            return set(range(rank))
        listed = dims if isinstance(dims, (list, tuple)) else [dims]
        # Negative dimensions count from the last one; a number has none.
        return {i % max(rank, 1) for i in listed}

    def same(self, *names: str) -> bool:
        """True if arguments are equal at both sizes."""
        return all(self.arguments.get(n) == self.whole_arguments.get(n) for n in names)

    @cached_property
    def has_equal_arguments(self) -> bool:
        """True if all arguments that are no tensors are equal at both sizes."""
        return bool(_plain(self.arguments) == _plain(self.whole_arguments))

    def check_numbers(self) -> None:
        """Refuse a number among the arguments that changes with the batch, unless it is a size."""
        for name, ours in self.arguments.items():
            theirs = _plain(self.whole_arguments.get(name))
            if name not in SIZES and _plain(ours) != theirs:
                raise Unrelated(Reason.NUMBER)

    def check_grows(self, relation: Relation, k: int = 0) -> Relation:
        """The relation by sample, if result `k` has its samples along that dimension alone."""
        if self.growing[k] != (relation.axis,):
            raise Unrelated(Reason.PAIRS)
        ours, theirs = self.shapes[k], list(shapes(self.whole))[k]
        if ours[relation.axis] * self.ratio != theirs[relation.axis]:
            raise Unrelated(Reason.PLACE)
        return relation


def number_relation(ours: float | complex, theirs: float | complex, ratio: Fraction) -> Relation:
    """The relation of a number that is `ours` in a slice and `theirs` in the whole batch."""
    # NaN differs from itself.
    if ours == theirs or (ours != ours and theirs != theirs):
        return SHARED if ours else ZERO
    if isinstance(ours, (bool, complex)) or isinstance(theirs, (bool, complex)):
        return UNKNOWN
    if not ours or not theirs or math.isinf(ours) or math.isinf(theirs):
        return UNKNOWN
    for power in range(-MAX_POWER, MAX_POWER + 1):
        # W = r^power v, and r is 1 / ratio.
        if math.isclose(theirs / ours, float(ratio) ** -power, rel_tol=RELATIVE_ROUNDING):
            return SHARED.with_power(power)
    return UNKNOWN


def shapes(node: fx.Node) -> Iterator[tuple[int, ...]]:
    """The shapes of a node's results; () for a number."""
    return (tuple(getattr(v, "shape", ())) for v in cost.outputs(node.meta.get("val")))


def growing(ours: tuple[int, ...], theirs: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions in which two shapes differ; all of them if their ranks differ."""
    if len(ours) != len(theirs):
        return tuple(range(max(len(ours), len(theirs))))
    return tuple(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)


def _plain(value: Any) -> Any:
    """Arguments without the tensors among them."""
    from torch import fx

    if isinstance(value, fx.Node):
        return "tensor"
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value
