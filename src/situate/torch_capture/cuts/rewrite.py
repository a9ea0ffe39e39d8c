"""The trace of a step whose ops are cut."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from situate.data.cuts import CutParameter
from situate.data.slices import Sums
from situate.torch_capture import names
from situate.torch_capture.cuts.classes import LetterClass, Member, best_member
from situate.torch_capture.cuts.letters import (
    Axis,
    Letter,
    Local,
    Piece,
    is_item,
    item_of,
    local,
    operands,
)
from situate.torch_capture.cuts.rules import letters
from situate.torch_capture.cuts.rules.lookups import UNREAD
from situate.torch_capture.cuts.rules.views import LINEAR
from situate.torch_capture.cuts.state import StatePart
from situate.torch_capture.cuts.values import Division, Value
from situate.torch_capture.cuts.writer import FakeResults, Writer
from situate.torch_capture.flow import described_outputs, layout, live_nodes, overwritten
from situate.torch_capture.names import path, state_name
from situate.torch_capture.nodes import operator_name
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    from torch import fx

CutClass = tuple[LetterClass, tuple[int, ...]]
"""A class, and the bounds of its parts in units."""


def rewritten(
    trace: Trace, cut_classes: Sequence[CutClass], sums: Sums, results: FakeResults
) -> Trace:
    """The step in which the ops of these classes are cut.

    An op of several classes is cut along the first of them. All other ops stay whole, and so do
    buffers, inputs and results.
    """
    step = _Step(trace, cut_classes, sums, results)
    for node in trace.graph.nodes:
        step.add(node)
    return step.finished()


class _Step:
    """A step that is written anew, op by op."""

    def __init__(
        self, trace: Trace, cut_classes: Sequence[CutClass], sums: Sums, results: FakeResults
    ) -> None:
        from torch import fx

        self._trace, self._sums = trace, sums
        self._writer = Writer(fx.Graph(), results)
        self._values: dict[tuple[fx.Node, int], Value] = {}
        # By op, its member of the first class that cuts it, and the bounds of its parts.
        self._cuts: dict[fx.Node, tuple[Member, LetterClass, tuple[int, ...]]] = {}
        for letter_class, bounds in cut_classes:
            for node, members in letter_class.members.items():
                self._cuts.setdefault(node, (best_member(members), letter_class, bounds))
        # By name, the kind of the first class that divides a parameter.
        self._kinds: dict[str, str] = {}
        self._divisions = self._parameter_divisions(cut_classes)
        # By name, the class of each module that reads a parameter.
        self._readers: dict[str, dict[str, str]] = defaultdict(dict)
        self._parts: dict[str, StatePart] = {}
        self._parts_of: dict[str, list[StatePart]] = {}
        self._placeholders: dict[str, Value] = {}
        self._live = live_nodes(trace)
        # By the value and the arguments of a view, the same view in the same pass.
        self._views: dict[Any, Value] = {}
        # By operator, the ops that no rule cuts and that read parts.
        self.without_rule: Counter[str] = Counter()

    def add(self, node: fx.Node) -> None:
        """Add an op, whole or in parts, or a placeholder."""
        if node.op in ("placeholder", "get_attr"):
            self._values[node, 0] = self._source(node)
        elif node.op == "call_function" and node in self._live:
            if is_item(node):
                return
            key = self._view_key(node)
            if key in self._views:
                self._values[node, 0] = self._views[key]
                return
            self._add_op(node)
            if key is not None:
                self._views[key] = self._values[node, 0]

    def finished(self) -> Trace:
        """The trace of the step."""
        results: list[tuple[Any, Any]] = []
        trace = self._trace
        for node, descriptor in described_outputs(trace.graph):
            value = self._value(node)
            name = _gradient_of(descriptor, trace)
            if name in self._divisions and name in self._placeholders:
                results += self._part_gradients(value, name, descriptor)
            else:
                results.append((descriptor, value.whole()))
        output = self._writer.graph.output(tuple(node for _, node in results))
        output.meta["desc"] = [descriptor for descriptor, _ in results]
        own = {name: name for name in self._parts}
        trainable = {name for name, part in self._parts.items() if part.of in trace.trainable}
        copies = {
            name: part.of_copy(trace.copies[part.of])
            for name, part in self._parts.items()
            if part.of in trace.copies
        }
        return dataclasses.replace(
            trace,
            notes=(*trace.notes, *_notes(self.without_rule)),
            graph=self._writer.graph,
            canonical=trace.canonical | own,
            trainable=trace.trainable | trainable,
            copies={**trace.copies, **copies},
            parts=self._parts,
            cut_parameters=tuple(
                self._cut_parameter(name) for name in self._parts_of if name not in trace.copies
            ),
        )

    def _cut_parameter(self, name: str) -> CutParameter:
        division = self._divisions[name]
        return CutParameter(
            names.uncompiled(name),
            self._kinds[name],
            division.dim,
            division.bounds,
            division.outer,
            tuple(self._readers[name].items()),
        )

    def _value(self, node: fx.Node) -> Value:
        return self._values[item_of(node) if is_item(node) else (node, 0)]

    def _new(self, node: fx.Node, **form: Any) -> Value:
        return Value(self._writer, node, self._sums, **form)

    # Sources.

    def _parameter_divisions(self, cut_classes: Sequence[CutClass]) -> dict[str, Division]:
        """By parameter, the division by the first class that cuts it."""
        divisions: dict[str, Division] = {}
        written = set(overwritten(self._trace))
        for letter_class, bounds in cut_classes:
            for (node, _), dim, outer in sorted(letter_class.dimensions, key=lambda d: d[1:]):
                name = self._trace.canonical.get(state_name(node))
                if node.op == "placeholder" and name and name not in written:
                    size = node.meta["val"].shape[dim] // outer
                    scaled = tuple(bound * size // letter_class.units for bound in bounds)
                    divisions.setdefault(name, Division(dim, outer, scaled))
                    self._kinds.setdefault(name, letter_class.kind)
        return divisions

    def _source(self, node: fx.Node) -> Value:
        name = self._trace.canonical.get(state_name(node), "")
        self._readers[name] |= dict(filter(None, map(names.module_class, node.users)))
        if name in self._placeholders:
            return self._placeholders[name]
        if name in self._divisions:
            self._placeholders[name] = self._parameter(node, name, self._divisions[name])
            return self._placeholders[name]
        return self._new(node, whole=self._writer.graph.node_copy(node))

    def _parameter(self, node: fx.Node, name: str, division: Division) -> Value:
        """The parts of a parameter, each with a placeholder of its own."""
        import torch

        nodes = []
        for i, (begin, end) in enumerate(pairwise(division.bounds)):
            part = StatePart(name, i, division.dim, division.outer, begin, end)
            self._parts[part.name] = part
            self._parts_of.setdefault(name, []).append(part)
            copy = self._writer.graph.node_copy(node)
            descriptor: Any = node.meta["desc"]
            copy.meta["desc"] = dataclasses.replace(descriptor, target=f"model.{part.name}")
            copy.meta["val"] = part.view(node.meta["val"])
            copy.meta[names.PART] = i
            if division.outer > 1:
                # Ranges have a dimension of their own in the part, and none in its readers.
                sizes = list(node.meta["val"].shape)
                sizes[division.dim] = division.outer * (end - begin)
                view = torch.ops.aten.view.default
                copy = self._writer.call(node, view, (copy, sizes), i)
            nodes.append(copy)
        return self._new(node, parts=(division, nodes))

    def _part_gradients(
        self, value: Value, name: str, descriptor: Any
    ) -> Iterator[tuple[Any, fx.Node]]:
        """The gradients of the parts of a parameter."""
        import torch

        division = self._divisions[name]
        for i, part in enumerate(self._parts_of[name]):
            gradient = value.piece(division, i)
            if division.outer > 1:
                # The part counts its ranges along one more dimension, so its gradient does.
                sizes = list(gradient.meta["val"].shape)
                sizes[part.dim : part.dim + 1] = [part.outer, part.end - part.begin]
                view = torch.ops.aten.view.default
                gradient = self._writer.call(gradient, view, (gradient, sizes), i)
            of = dataclasses.replace(descriptor.grad_of, target=f"model.{part.name}")
            yield dataclasses.replace(descriptor, grad_of=of), gradient

    # Ops.

    def _add_op(self, node: fx.Node) -> None:
        if self._is_linear(node):
            self._add_linear(node)
        elif node in self._cuts:
            self._add_parts(node, *self._cuts[node])
        else:
            self._add_whole(node)

    def _view_key(self, node: fx.Node) -> Any:
        """Equal for equal views of a result; None for other ops.

        Products of one tensor, such as queries, keys and values, each have a view of it. As one
        value, it is gathered once for all of them.
        """
        sources = operands(node)
        if operator_name(node) not in LINEAR or len(sources) != 1:
            return None
        # A parameter is gathered anew in the backward pass, so that it need not be held.
        if sources[0].op != "call_function":
            return None
        # The value stays in `self._values`, so its identity is its own.
        arguments = repr((node.args[1:], dict(node.kwargs)))
        value, tag = self._value(sources[0]), node.meta.get("partitioner_tag")
        return node.target, id(value), arguments, tag, self._cut_key(node)

    def _cut_key(self, node: fx.Node) -> Any:
        """The letter by which an op is cut, and its bounds; None for a whole op."""
        if node not in self._cuts:
            return None
        member, letter_class, bounds = self._cuts[node]
        return member.letter.inputs, member.letter.outputs, letter_class.units, bounds

    def _add_whole(self, node: fx.Node) -> None:
        from torch import fx

        sources = operands(node)
        # To gather a single number, such as a loss, costs nothing worth a warning.
        has_parts = any(
            not self._value(source).is_whole and source.meta["val"].numel() > 1
            for source in sources
        )
        if has_parts and not letters(node):
            self.without_rule[operator_name(node)] += 1
        own = [self._value(source).whole() for source in sources]
        remaining = iter(own)
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda _: next(remaining))
        if all(_is_alike(one, source) for one, source in zip(own, sources, strict=True)):
            target: Any = node.target
            copy = self._writer.graph.call_function(target, args, kwargs)
            copy.meta |= node.meta
        else:
            copy = self._writer.call(node, node.target, args, None, kwargs)
        self._keep_whole(node, copy)

    def _keep_whole(self, node: fx.Node, copy: fx.Node) -> None:
        for k in self._outputs(node):
            item = copy if k is None else self._writer.item(copy, k)
            self._values[node, k or 0] = self._new(node, whole=item)

    def _outputs(self, node: fx.Node) -> list[int | None]:
        """The numbers of the outputs that are used; None for an op with a single one."""
        if not isinstance(node.meta["val"], (list, tuple)):
            return [None]
        users = [user for user in node.users if is_item(user) and user in self._live]
        return [*sorted({item_of(user)[1] for user in users})]

    def _is_linear(self, node: fx.Node) -> bool:
        """True for a view of partial results, or a sum of two values of as many partial results, so
        that they can be added up later and together."""
        sources = operands(node)
        if not sources:
            return False
        values = [self._value(source) for source in sources]
        counts = {len(value.partial) for value in values}
        if len(counts) != 1 or counts == {0} or any(len(s.users) > 1 for s in sources):
            return False
        name = operator_name(node)
        is_sum = name == "add" and len(values) == 2 and not node.kwargs
        return is_sum or (name in LINEAR and len(values) == 1)

    def _add_linear(self, node: fx.Node) -> None:
        values = [self._value(source) for source in operands(node)]
        nodes = []
        for i in range(len(values[0].partial)):
            own = iter([value.partial[i] for value in values])
            nodes.append(self._same(node, own, i))
        self._values[node, 0] = self._new(node, partial=nodes)

    def _same(self, node: fx.Node, own: Iterator[fx.Node], part: int) -> fx.Node:
        """The same call with other operands."""
        from torch import fx

        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda _: next(own))
        return self._writer.call(node, node.target, args, part, kwargs)

    def _add_parts(
        self, node: fx.Node, member: Member, letter_class: LetterClass, bounds: tuple[int, ...]
    ) -> None:
        letter, sources = member.letter, [self._value(source) for source in operands(node)]
        units = letter.size // member.ranges
        # The bounds in numbers of this op's letter.
        scaled = [bound * units // letter_class.units for bound in bounds]
        divisions = [
            None
            if axis is None
            else _division(axis, member, value.shape, bounds, letter_class.units)
            for axis, value in zip(letter.inputs, sources, strict=True)
        ]
        parts = []
        is_read = operator_name(node) not in UNREAD
        for i, (begin, end) in enumerate(pairwise(scaled)):
            own = [
                _operand(value, division, i) if is_read else value.nearest(i)
                for value, division in zip(sources, divisions, strict=True)
            ]
            parts.append(local(node, letter, Piece(i, begin, end, units), own))
        self._keep_parts(node, member, letter_class, bounds, self._part_nodes(node, letter, parts))

    def _part_nodes(
        self, node: fx.Node, letter: Letter, parts: Sequence[Local]
    ) -> Mapping[int, list[fx.Node]]:
        """By output, the nodes of its parts."""
        if letter.write is not None:
            return dict(enumerate(letter.write(self._writer, node, parts)))
        calls = [
            self._writer.call(node, node.target, p.args, p.piece.number, p.kwargs) for p in parts
        ]
        for call in calls:
            # Kernels of attention count as draws, even without dropout.
            call.meta[names.DRAW] = node.name
        return {
            k or 0: calls if k is None else [self._writer.item(call, k) for call in calls]
            for k in self._outputs(node)
        }

    def _keep_parts(
        self,
        node: fx.Node,
        member: Member,
        letter_class: LetterClass,
        bounds: tuple[int, ...],
        nodes: Mapping[int, list[fx.Node]],
    ) -> None:
        for k in self._outputs(node):
            own, output = nodes[k or 0], member.letter.outputs[k or 0]
            if isinstance(output, Axis):
                value = node.meta["val"] if k is None else node.meta["val"][k]
                division = _division(output, member, tuple(value.shape), bounds, letter_class.units)
                self._values[node, k or 0] = self._new(node, parts=(division, own))
            elif output == "sum":
                self._values[node, k or 0] = self._new(node, partial=own)
            else:
                self._values[node, k or 0] = self._new(node, whole=own[0])


def _operand(value: Value, division: Division | None, part: int) -> fx.Node:
    """The whole value or the piece of it that a part reads."""
    return value.whole(part) if division is None else value.piece(division, part)


def _notes(without_rule: Counter[str]) -> Iterator[str]:
    """A warning about ops that no rule cuts."""
    if without_rule:
        names = ", ".join(sorted(without_rule))
        yield (
            "cuts: whole ops that read parts, because no rule cuts them: "
            f"{without_rule.total():,}, by {names}"
        )


def _division(
    axis: Axis, member: Member, sizes: tuple[int, ...], bounds: tuple[int, ...], units: int
) -> Division:
    """The division of a tensor's dimension by a class.

    Args:
        sizes: of the tensor.
        bounds: of the parts, in units of the class.
        units: of the class.
    """
    outer = axis.outer * member.ranges
    span = sizes[axis.dim] // outer
    return Division(axis.dim, outer, tuple(bound * span // units for bound in bounds))


def _is_alike(node: fx.Node, source: fx.Node) -> bool:
    """True for a node with the memory layout of the node it replaces."""
    one, other = node.meta["val"], source.meta["val"]
    return one is other or bool(layout(one) == layout(other))


def _gradient_of(descriptor: Any, trace: Trace) -> str:
    """The parameter whose gradient an output is; empty for other outputs."""
    if type(descriptor).__name__ != "GradAOTOutput":
        return ""
    return trace.canonical.get(path(descriptor.grad_of), "")
