"""Classes of letters: the dimensions of a step that are cut together.

A letter of an op is joined with the letters of its producers and readers through the dimensions of
their tensors, across forward pass, backward pass and update. A class ends where an op has no letter
for a dimension, or sums over it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from math import gcd
from typing import TYPE_CHECKING

from situate.torch_capture.cuts.letters import Axis, Letter, is_item, item_of, operands, shape
from situate.torch_capture.cuts.rules import letters
from situate.torch_capture.flow import described_outputs
from situate.torch_capture.garbage import without_collection
from situate.torch_capture.names import path, state_name
from situate.torch_capture.nodes import operator_name
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    from torch import fx

Output = tuple["fx.Node", int]
"""A node, and the number of one of its outputs."""

Dimension = tuple[Output, int, int]
"""An output, one of its dimensions, and the number of ranges in which a class divides it."""

KINDS = (
    "heads",
    "experts",
    "vocabulary",
    "sequence",
    "batch",
    "channels",
    "hidden",
    "features",
    "others",
)
"""Kinds of classes by name; a class of several kinds has the first of them."""

SOFTMAX = ("_softmax", "_safe_softmax")
"""The operators by which an attention that is no single op is recognised."""

FIRST = ("attention", "embedding", "log_softmax", "nll_loss")
"""Operators whose letters have more structure than those of a product, which follows them."""


@dataclass(frozen=True)
class Member:
    """An op of a class.

    Attributes:
        letter: along which the class cuts it.
        ranges: in which the class divides the letter, each cut alike.
    """

    letter: Letter
    ranges: int


def best_member(members: Sequence[Member]) -> Member:
    """The member along which a class cuts an op: one without a sum, if there is one."""
    return min(members, key=lambda member: member.letter.is_contracted)


@dataclass
class LetterClass:
    """A class of letters.

    Attributes:
        is_inner: True for a class that some product makes and another one sums over, such as heads.
        units: the number of units that parts divide among themselves, such as heads.
        members: the ops.
        dimensions: of tensors, with those of parameters and inputs.
        kinds: of the letters, with the letters that have one.
        kind: one of `KINDS`.
        module: the path of the module that holds the class's parameters; empty for none.
    """

    units: int = 0
    members: dict[fx.Node, list[Member]] = field(default_factory=dict)
    dimensions: set[Dimension] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    kind: str = ""
    module: str = ""
    is_inner: bool = False


@without_collection()
def classes(trace: Trace) -> list[LetterClass]:
    """The classes of a step, in the order of their first op."""
    return _Search(trace).classes()


class _Search:
    """A search over the ops of a step."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._letters = {
            node: letters(node) for node in trace.graph.nodes if node.op == "call_function"
        }
        self._outputs: dict[fx.Node, Output] = {}
        self._readers: dict[Output, list[tuple[fx.Node, int]]] = {}
        self._ranges: dict[tuple[fx.Node, int], set[int]] = {}
        for node in trace.graph.nodes:
            self._outputs[node] = self._output(node)
        self._join_tied()
        # A parameter and its gradients are cut alike, in both directions.
        self._alike = self._gradients()
        for node, own in self._letters.items():
            for position, operand in enumerate(operands(node) if own else ()):
                self._readers.setdefault(self._outputs[operand], []).append((node, position))

    def classes(self) -> list[LetterClass]:
        nodes = [node for node, own in self._letters.items() if own]
        first = [node for node in nodes if any(name in str(node.target) for name in FIRST)]
        result = []
        for node in dict.fromkeys([*first, *filter(_is_product, nodes)]):
            for k, letter in enumerate(self._letters[node]):
                if (node, k) not in self._ranges:
                    result.append(self._class(node, letter, 1))
        for letter_class in [*result]:
            for node, k, units in self._nested(letter_class):
                if units not in self._ranges[node, k]:
                    result.append(self._class(node, self._letters[node][k], units))
        large = [letter_class for letter_class in result if letter_class.units > 1]
        for letter_class in large:
            _name(letter_class, self._trace)
            letter_class.is_inner = _is_inner(letter_class)
        inner = [letter_class for letter_class in large if letter_class.is_inner]
        for letter_class in large:
            letter_class.kind = _kind(letter_class, inner)
        return large

    def _nested(self, letter_class: LetterClass) -> Iterator[tuple[fx.Node, int, int]]:
        """The batches of products of which a class divides only the outer dimension.

        Attention without an operator of its own multiplies a batch of samples x heads.

        Yields:
            the product, the number of its letter, and the units of the outer dimension.
        """
        units = letter_class.units
        for node in letter_class.members:
            for k, letter in enumerate(self._letters[node]):
                is_batch = _is_batch(letter) and _is_product(node)
                is_outer = 1 < units < letter.size and letter.size % units == 0
                if is_batch and is_outer and 1 in self._ranges.get((node, k), ()):
                    yield node, k, units

    def _output(self, node: fx.Node) -> Output:
        """The output that a node stands for; items are outputs of the op that computes them."""
        return item_of(node) if is_item(node) else (node, 0)

    def _join_tied(self) -> None:
        """Let all placeholders of a parameter stand for its first."""
        first: dict[str, Output] = {}
        for node in self._trace.graph.nodes:
            name = self._trace.canonical.get(state_name(node))
            if node.op == "placeholder" and name:
                self._outputs[node] = first.setdefault(name, (node, 0))

    def _gradients(self) -> dict[Output, list[Output]]:
        """By parameter, its gradients, and by gradient, its parameter."""
        parameters = {
            self._trace.canonical.get(state_name(node)): self._outputs[node]
            for node in self._trace.graph.nodes
            if node.op == "placeholder"
        }
        alike: dict[Output, list[Output]] = {}
        for node, descriptor in described_outputs(self._trace.graph):
            # By name, since the class is in a private module of PyTorch.
            if type(descriptor).__name__ == "GradAOTOutput":
                name = self._trace.canonical.get(path(descriptor.grad_of))
                gradient = self._outputs[node]
                if name in parameters and name:
                    alike.setdefault(gradient, []).append(parameters[name])
                    alike.setdefault(parameters[name], []).append(gradient)
        return alike

    def _class(self, node: fx.Node, letter: Letter, ranges: int) -> LetterClass:
        result = LetterClass()
        pending = list(self._join(result, node, letter, ranges))
        while pending:
            dimension = pending.pop()
            if dimension in result.dimensions:
                continue
            result.dimensions.add(dimension)
            (owner, k), dim, outer = dimension
            pending += [(other, dim, outer) for other in self._alike.get((owner, k), ())]
            for own in self._letters.get(owner, ()):
                pending += self._follow(result, owner, own, own.outputs[k], dimension)
            for reader, position in self._readers.get((owner, k), ()):
                for own in self._letters[reader]:
                    pending += self._follow(result, reader, own, own.inputs[position], dimension)
        return result

    def _follow(
        self,
        letter_class: LetterClass,
        node: fx.Node,
        letter: Letter,
        axis: object,
        dimension: Dimension,
    ) -> Iterator[Dimension]:
        """The further dimensions of an op that a class cuts along one of its letters."""
        _, dim, outer = dimension
        if isinstance(axis, Axis) and axis.dim == dim and outer % axis.outer == 0:
            # Of an op's dimension within `outer` others, the class cuts each of so many ranges.
            ranges = outer // axis.outer
            fits = letter.size % ranges == 0 and letter.size > ranges
            if fits and (ranges == 1 or not letter.is_numbered):
                yield from self._join(letter_class, node, letter, ranges)

    def _join(
        self, letter_class: LetterClass, node: fx.Node, letter: Letter, ranges: int
    ) -> Iterator[Dimension]:
        member, members = Member(letter, ranges), letter_class.members.setdefault(node, [])
        if member in members:
            return
        members.append(member)
        self._ranges.setdefault((node, self._letters[node].index(letter)), set()).add(ranges)
        # Every member is cut at the same shares, so the units divide all.
        letter_class.units = gcd(letter_class.units, letter.size // ranges)
        if letter.kind:
            letter_class.kinds.add(letter.kind)
        for operand, axis in zip(operands(node), letter.inputs, strict=True):
            if axis is not None:
                yield self._outputs[operand], axis.dim, axis.outer * ranges
        for k, output in enumerate(letter.outputs):
            if isinstance(output, Axis):
                yield (node, k), output.dim, output.outer * ranges


def _is_product(node: fx.Node) -> bool:
    return _is_product_operator(node.target)


@cache
def _is_product_operator(target: object) -> bool:
    return any(name in str(target) for name in ("mm", "mv", "convolution"))


def _name(letter_class: LetterClass, trace: Trace) -> None:
    """Add the module of a class, and the kinds that its parameters and inputs say."""
    parameters, inputs = [], []
    for (node, _), dim, _ in letter_class.dimensions:
        if node.op == "placeholder":
            if name := trace.canonical.get(state_name(node)):
                parameters.append((trace.parameter(name), dim, len(shape(node))))
            elif type(node.meta["desc"]).__name__ == "PlainAOTInput":
                inputs.append(dim)
    letter_class.module = _module([name for name, _, _ in parameters])
    if not parameters:
        letter_class.kinds.add("sequence" if 1 in inputs else "batch")
    elif any(dim == 0 and dims == 3 for _, dim, dims in parameters) and not _convolves(
        letter_class
    ):
        letter_class.kinds.add("experts")
    elif _batches_products(letter_class) and _has_softmax(letter_class):
        letter_class.kinds.add("heads")


def _convolves(letter_class: LetterClass) -> bool:
    """True for channels, which one-dimensional convolutions have first of three dimensions too."""
    return any("convolution" in operator_name(node) for node in letter_class.members)


def _batches_products(letter_class: LetterClass) -> bool:
    """True for the batch of a product: positions of a sequence are its rows and columns."""
    return any(
        operator_name(node) == "bmm" and any(_is_batch(member.letter) for member in members)
        for node, members in letter_class.members.items()
    )


def _is_batch(letter: Letter) -> bool:
    return letter.inputs == (Axis(0), Axis(0))


def _has_softmax(letter_class: LetterClass) -> bool:
    return any(operator_name(node) in SOFTMAX for node in letter_class.members)


def _kind(letter_class: LetterClass, inner: Sequence[LetterClass]) -> str:
    """The kind of a class, one of `KINDS`.

    Args:
        inner: all inner classes of the step.
    """
    # The residual stream connects modules that have classes of their own.
    within = [other for other in inner if _is_inside(other.module, letter_class.module)]
    kind = "hidden" if len(within) > 1 else "features"
    own = letter_class.kinds | {kind if letter_class.is_inner else "others"}
    return next(kind for kind in KINDS if kind in own)


def _is_inside(path_: str, around: str) -> bool:
    return path_ != around and (not around or path_.startswith(f"{around}."))


def _is_inner(letter_class: LetterClass) -> bool:
    forward = [
        member
        for node, members in letter_class.members.items()
        if _is_product(node) and node.meta.get("partitioner_tag") != "is_backward"
        for member in members
    ]
    return len({member.letter.is_contracted for member in forward}) > 1


def _module(parameters: Sequence[str]) -> str:
    """The path of the innermost module with all these parameters."""
    paths = [name.split(".")[:-1] for name in parameters]
    same = takewhile(lambda level: len(set(level)) == 1, zip(*paths, strict=False))
    return ".".join(level[0] for level in same)
