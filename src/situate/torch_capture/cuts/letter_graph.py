"""The letter graph of a traced step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

from situate.data.letter_graph import SUM, WHOLE, ClassOption, LetterGraph, LetterOp, Passage, Value
from situate.torch_capture import cost
from situate.torch_capture.cuts.classes import LetterClass, best_member
from situate.torch_capture.cuts.letters import Axis, is_item, operands
from situate.torch_capture.cuts.rules.lookups import is_read
from situate.torch_capture.flow import described_outputs, overwritten, storages
from situate.torch_capture.garbage import without_collection
from situate.torch_capture.graph import drafts, to_step
from situate.torch_capture.names import path, state_name
from situate.torch_capture.ops import Draft
from situate.torch_capture.tracing import Trace, copied

if TYPE_CHECKING:
    from torch import fx


@without_collection()
def letter_graph(
    trace: Trace, letter_classes: Sequence[LetterClass], optimizer: str
) -> LetterGraph:
    """The ops and parameters of a step, with the classes that may cut them.

    Args:
        letter_classes: of the trace.
        optimizer: of the graph whose ops are numbered.
    """
    return _Builder(trace, letter_classes, optimizer).graph()


class _Builder:
    def __init__(self, trace: Trace, letter_classes: Sequence[LetterClass], optimizer: str) -> None:
        self._trace, self._classes = trace, letter_classes
        self._storages = storages(trace)
        # By node, its ops in the graph and their numbers; a parameter has several.
        self._drafts: dict[fx.Node, list[tuple[int, Draft]]] = {}
        copy = copied(trace)
        original = dict(zip(copy.graph.nodes, trace.graph.nodes, strict=True))
        for i, draft in enumerate(drafts(to_step(copy, optimizer))):
            # Ops that clip gradients have no node here.
            if draft.node in original:
                self._drafts.setdefault(original[draft.node], []).append((i, draft))
        self._number = {node: i for i, node in enumerate(self._drafts)}
        self._options = self._class_options()
        self._is_read_backward = {
            self._storages[operand]
            for node in trace.graph.nodes
            if node.meta.get("partitioner_tag") == "is_backward"
            for operand in node.all_input_nodes
        }

    def graph(self) -> LetterGraph:
        gradients: dict[str, list[fx.Node]] = {}
        for node, descriptor in described_outputs(self._trace.graph):
            if type(descriptor).__name__ == "GradAOTOutput":
                name = self._trace.canonical.get(path(descriptor.grad_of), "")
                gradients.setdefault(name, []).append(node)
        places: Counter[str] = Counter()
        ops = []
        for node, pairs in self._drafts.items():
            op = pairs[-1][1].op
            place = f"{op.kind} {op.module} {op.phase}"
            places[place] += 1
            # Without the numbers of layers, an op has the same name in each repeated block.
            tie = f"{re.sub(r'[0-9]+', '*', place)} {places[place]}"
            numbers = tuple(i for i, _ in pairs)
            if node.op == "call_function":
                ops.append(self._computation(node, numbers, tie))
            else:
                name = self._trace.canonical.get(state_name(node), "")
                ops.append(self._source(node, numbers, tie, gradients.get(name, [])))
        kinds = tuple(one.kind for one in self._classes)
        units = tuple(one.units for one in self._classes)
        ranges = _connected([one.dimensions for one in self._classes])
        dimensions = _connected([{d[:2] for d in one.dimensions} for one in self._classes])
        return LetterGraph(tuple(ops), kinds, units, ranges, dimensions)

    def _class_options(self) -> dict[fx.Node, list[tuple[int, Any]]]:
        """By op, the classes that may cut it, each with its member; by parameter, with None."""
        options: dict[fx.Node, list[tuple[int, Any]]] = {}
        written = set(overwritten(self._trace))
        for c, letter_class in enumerate(self._classes):
            for node, members in letter_class.members.items():
                options.setdefault(node, []).append((c, best_member(members)))
            names = {
                self._trace.canonical.get(state_name(node)): node
                for (node, _), _, _ in letter_class.dimensions
                if node.op == "placeholder"
            }
            for name, node in names.items():
                # State that the step overwrites stays whole.
                if name and name not in written:
                    options.setdefault(node, []).append((c, None))
        return options

    def _computation(self, node: fx.Node, numbers: tuple[int, ...], tie: str) -> LetterOp:
        # Small state that an op holds itself has no number.
        sources = operands(node)
        is_edge = [
            self._storages[source][0] in self._number and is_read(node, i)
            for i, source in enumerate(sources)
        ]
        values = cost.outputs(node.meta["val"])
        options = []
        for c, member in self._options.get(node, ()):
            inputs = [WHOLE if axis is None else c for axis in member.letter.inputs]
            forms = tuple(form for form, is_one in zip(inputs, is_edge, strict=True) if is_one)
            outputs = tuple(_form(output, c) for output in member.letter.outputs)
            options.append(ClassOption(c, forms, outputs))
        is_backward = node.meta.get("partitioner_tag") == "is_backward"
        saved = sum(
            cost.nbytes(value)
            for k, value in enumerate(values)
            if not is_backward and (node, k) in self._is_read_backward
        )
        edges = list(compress(sources, is_edge))
        reads, passages = self._reads(edges)
        sizes = tuple(map(cost.nbytes, values))
        return LetterOp(numbers, tie, reads, sizes, tuple(options), saved, passages)

    def _source(
        self, node: fx.Node, numbers: tuple[int, ...], tie: str, gradients: Sequence[fx.Node]
    ) -> LetterOp:
        reads, passages = self._reads(gradients)
        options = tuple(
            ClassOption(c, (c,) * len(reads), (c,)) for c, _ in self._options.get(node, ())
        )
        sizes = (cost.nbytes(node.meta["val"]),)
        return LetterOp(numbers, tie, reads, sizes, options, passages=passages)

    def _reads(self, nodes: Sequence[fx.Node]) -> tuple[tuple[Value, ...], tuple[Passage, ...]]:
        """The numbered values behind nodes, and the views on the way to them."""
        numbered = [node for node in nodes if self._storages[node][0] in self._number]
        owners = [self._storages[node] for node in numbered]
        reads = tuple((self._number[owner], k) for owner, k in owners)
        return reads, tuple(map(self._passage, numbered))

    def _passage(self, node: fx.Node) -> Passage:
        owner, k = self._storages[node]
        nbytes, views = cost.nbytes(cost.outputs(owner.meta["val"])[k]), []
        while node is not owner and node.op == "call_function":
            source: Any = node.args[0]
            if is_item(node) and source is owner:
                break
            nbytes = min(nbytes, sum(map(cost.nbytes, cost.outputs(node.meta["val"]))))
            views.append({c for c, _ in self._options.get(node, ())})
            node = source
        if not views:
            return Passage(nbytes)
        every, some = frozenset.intersection(*map(frozenset, views)), frozenset().union(*views)
        return Passage(nbytes, False, every, some)


def _connected(sets: Sequence[Iterable[object]]) -> tuple[int, ...]:
    """By set, the first set that it is connected with by common elements."""
    group = list(range(len(sets)))
    first: dict[object, int] = {}
    for i, own in enumerate(sets):
        for element in own:
            other = group[first.setdefault(element, i)]
            if other != group[i]:
                low, high = sorted((other, group[i]))
                group = [low if number == high else number for number in group]
    return tuple(group)


def _form(output: object, letter_class: int) -> int:
    if isinstance(output, Axis):
        return letter_class
    return SUM if output == "sum" else WHOLE
